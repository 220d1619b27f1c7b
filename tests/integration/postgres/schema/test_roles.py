"""Each role reaches nothing beyond its program, and keeps no right that was granted by hand."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict

from tests.fixtures_databases import ROLES, as_role, migrate

pytestmark = pytest.mark.postgres

APPENDED = ("op_message", "op_message_default", "audit_log")
OUT_OF_REACH = {
    "outbox_api": (
        "UPDATE outbox.half_message SET nonce = 1",
        "DELETE FROM outbox.commit_log",
        "INSERT INTO outbox.check_attempt (half_id) VALUES (1)",
        "UPDATE outbox.installation SET base = 1",
        "SELECT outbox.create_leaf(9)",
        "SELECT outbox.lock_leaves()",
        "SELECT outbox.drop_leaf('half_message', 0)",
    ),
    "outbox_checker": (
        "SELECT secret_hmac FROM outbox.api_key",
        "INSERT INTO outbox.api_key VALUES ('k', 'n', '', '{}', '{admin}')",
        "UPDATE outbox.producer_group SET check_url = 'http://127.0.0.1'",
        "SELECT action FROM outbox.audit_log",
        "DELETE FROM outbox.half_message",
        "DROP TABLE outbox.check_queue",
        "ALTER TABLE outbox.half_message DETACH PARTITION outbox.half_message_default",
    ),
    "outbox_reconcile": (
        "SELECT secret FROM outbox.producer_group",
        "SELECT value FROM outbox.half_message",
        "SELECT * FROM outbox.api_key",
        "INSERT INTO outbox.op_message VALUES (1, 1, now(), 1, 1)",
        "UPDATE outbox.progress SET position = 0",
        "SELECT outbox.lock_leaves()",
    ),
    "outbox_publish": (
        "SELECT * FROM outbox.plain_message",
        "SELECT outbox.publish('a', 'b', 'c')",
        "SELECT outbox.begin_admission()",
        "SELECT outbox.allow_publish('outbox_publish', 'a', '{}')",
    ),
}


@pytest.mark.parametrize("role", ["outbox_api", "outbox_checker"])
@pytest.mark.parametrize("table", APPENDED)
def test_decisions_and_audit_rows_are_appended_and_never_changed(
    database_url: str, role: str, table: str
) -> None:
    with psycopg.connect(as_role(database_url, role), autocommit=True) as connection:
        for statement in (
            f"UPDATE outbox.{table} SET reason = 'other'",
            f"DELETE FROM outbox.{table}",
            f"TRUNCATE outbox.{table}",
            f"DROP TABLE outbox.{table}",
        ):
            with pytest.raises(errors.InsufficientPrivilege):
                connection.execute(statement.encode())


@pytest.mark.parametrize("role", OUT_OF_REACH)
def test_a_role_reaches_nothing_beyond_its_program(database_url: str, role: str) -> None:
    with psycopg.connect(as_role(database_url, role), autocommit=True) as connection:
        for statement in (*OUT_OF_REACH[role], "CREATE TABLE outbox.mine ()", "CREATE ROLE mine"):
            with pytest.raises(errors.InsufficientPrivilege):
                connection.execute(statement.encode())


REACHED = """
SELECT relname FROM pg_class c WHERE relnamespace = 'outbox'::regnamespace AND CASE
    WHEN relkind = 'S' THEN has_sequence_privilege('outbox_publish', c.oid, 'USAGE, SELECT, UPDATE')
    WHEN relkind NOT IN ('i', 'I', 'c', 't') THEN
        has_table_privilege('outbox_publish', c.oid, 'DELETE, TRUNCATE, TRIGGER')
        OR has_any_column_privilege('outbox_publish', c.oid, 'SELECT, INSERT, UPDATE, REFERENCES')
    END
UNION ALL
SELECT proname FROM pg_proc WHERE pronamespace = 'outbox'::regnamespace AND prosecdef
    AND has_function_privilege('outbox_publish', oid, 'EXECUTE')
"""
"""Every relation that a producer in SQL mode reaches, and what it runs as the owner."""
OPEN_TO_SHADOWS = """
SELECT proname FROM pg_proc WHERE pronamespace = 'outbox'::regnamespace AND prosecdef
    AND NOT coalesce('search_path=pg_catalog, pg_temp' = ANY (proconfig), false)
"""
"""What runs as the owner and would take a caller's own function or table for ours."""


def test_a_producers_role_reaches_no_relation_and_runs_one_function_as_the_owner(
    database_url: str,
) -> None:
    with psycopg.connect(database_url, autocommit=True) as owner:
        assert owner.execute(REACHED.encode()).fetchall() == [("publish",)]
        assert owner.execute(OPEN_TO_SHADOWS.encode()).fetchall() == []


def test_the_api_deletes_since_when_checks_fail_and_no_other_progress(database_url: str) -> None:
    kept = ("relay:3", "sweep", "reconcile:3", "heartbeat:check")
    insert = "INSERT INTO outbox.progress (name) VALUES (%s) ON CONFLICT DO NOTHING"
    delete = "DELETE FROM outbox.progress WHERE name = %s"
    with psycopg.connect(database_url, autocommit=True) as owner:
        for name in (*kept, "failing:1"):
            owner.execute(insert, (name,))
    with psycopg.connect(as_role(database_url, "outbox_api"), autocommit=True) as api:
        for name in kept:
            with pytest.raises(errors.InsufficientPrivilege, match=name):
                api.execute(delete, (name,))
        assert api.execute(delete, ("failing:1",)).rowcount == 1


def test_a_leaf_in_use_is_neither_detached_nor_dropped(database_url: str) -> None:
    with psycopg.connect(as_role(database_url, "outbox_checker"), autocommit=True) as connection:
        for statement in (
            "SELECT outbox.detach_leaf(outbox.watermark() >> 20, '{}')",
            "SELECT outbox.drop_leaf('half_message', outbox.watermark() >> 20)",
            "SELECT outbox.drop_leaf('producer_group', 0)",
        ):
            with pytest.raises(errors.ObjectInUse):
                connection.execute(statement.encode())


BY_HAND = {
    "GRANT DELETE ON outbox.audit_log TO outbox_api": (
        "SELECT has_table_privilege('outbox_api', 'outbox.audit_log', 'DELETE')"
    ),
    "GRANT UPDATE (decision) ON outbox.op_message TO outbox_checker": (
        "SELECT has_any_column_privilege('outbox_checker', 'outbox.op_message', 'UPDATE')"
    ),
    "GRANT SELECT ON outbox.api_key TO PUBLIC": (
        "SELECT has_table_privilege('outbox_publish', 'outbox.api_key', 'SELECT')"
    ),
    "GRANT CREATE ON SCHEMA outbox TO outbox_publish": (
        "SELECT has_schema_privilege('outbox_publish', 'outbox', 'CREATE')"
    ),
    "GRANT UPDATE ON SEQUENCE outbox.producer_group_id_seq TO outbox_checker": (
        "SELECT has_sequence_privilege('outbox_checker', 'outbox.producer_group_id_seq', 'UPDATE')"
    ),
    "GRANT EXECUTE ON FUNCTION outbox.drop_leaf TO PUBLIC": (
        "SELECT has_function_privilege('outbox_api', 'outbox.drop_leaf(text, bigint)', 'EXECUTE')"
    ),
}
"""Rights that a role does not need, and whether it has them."""


@pytest.mark.parametrize("granted", BY_HAND)
def test_migrate_up_takes_back_what_was_granted_by_hand(database_url: str, granted: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(granted.encode())
        assert connection.execute(BY_HAND[granted].encode()).fetchone() == (True,)
        migrate(database_url)
        assert connection.execute(BY_HAND[granted].encode()).fetchone() == (False,)


def test_a_program_connects_to_a_database_that_is_closed_to_everybody_else(
    database_url: str,
) -> None:
    """As a hardening guide wants it, and docs/security.md advises."""
    closed = conninfo_to_dict(database_url)["dbname"]
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(f"REVOKE ALL ON DATABASE {closed} FROM PUBLIC".encode())
    migrate(database_url)
    for role in ROLES:
        with psycopg.connect(as_role(database_url, role)) as program:
            assert program.info.user == role
