"""Each program's role can run every statement of the program, and nothing beyond it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict

from outbox.postgres.messages.decisions import END, END_RACING
from outbox.postgres.operators.candidates import SQL as CANDIDATES
from outbox.postgres.sessions.statements import load
from tests.fixtures_databases import ROLES, as_role, migrate
from tests.fixtures_paths import PROJECT
from tests.fixtures_source_tree import import_graph

pytestmark = pytest.mark.postgres

PROGRAMS = {
    "outbox_api": ("api.__main__", "outbox.postgres.operators.operator_view"),
    "outbox_checker": ("checker.__main__", "outbox.postgres.operators.shard_admin"),
    "outbox_reconcile": ("spark.__main__",),
}
"""What a role runs: a program, and what operators run with the program's settings."""
NOT_RUN = {
    ("outbox_api", "outbox.postgres.messages.seen_topics.store"),
    ("outbox_checker", "outbox.postgres.messages.audit_log.page"),
    ("outbox_reconcile", "outbox.postgres.messages.half_rows.copy_halves"),
    ("outbox_reconcile", "outbox.postgres.messages.half_rows.read_halves"),
}
"""Statements of a shared module that one of its users does not run."""
TYPES = {"now": "timestamptz", "at": "timestamptz", "wait": "integer"}
"""Parameters whose type the server cannot tell without their value."""
FILLED_IN = {
    "outbox.postgres.messages.decisions.end": (END, END_RACING),
    "outbox.postgres.operators.candidates.half": (
        "SELECT FROM (SELECT 1::int8 AS half_id) ids CROSS JOIN LATERAL"
        f" ({CANDIDATES['half']}) half",
    ),
}
"""Texts that become statements when their module fills them in."""
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


def statements(role: str) -> Iterator[tuple[str, str]]:
    """Yield name and text of each statement that a role runs."""
    graph, programs = import_graph(), PROGRAMS[role]
    for module in sorted({*programs}.union(*map(graph.find_upstream_modules, programs))):
        if (PROJECT / module.replace(".", "/")).with_suffix(".sql").exists():
            loaded = load(module)
            for name in loaded:
                full = f"{module}.{name}"
                yield from ((full, text) for text in FILLED_IN.get(full, (loaded[name],)))


def run_without_rows(connection: psycopg.Connection, text: str) -> None:
    """Let the server check the rights of a statement; it changes nothing."""
    if re.search("^COPY ", text, re.MULTILINE):
        with connection.cursor().copy(text.encode()):
            return
    if prepared := re.search(r"^PREPARE (\w+) \(([^)]*)\)", text, re.MULTILINE):
        connection.execute(text.encode(), prepare=False)
        values = ", ".join("NULL" for _ in prepared[2].split(","))
        connection.execute(f"EXPLAIN EXECUTE {prepared[1]} ({values})".encode(), prepare=False)
        return
    names: list[str] = []

    def numbered(found: re.Match[str]) -> str:
        name = found[1]
        if name not in names:
            names.append(name)
        number = f"${names.index(name) + 1}"
        return f"{number}::{TYPES[name]}" if name in TYPES else number

    plain = re.sub(r"%\((\w+)\)[sbt]", numbered, text).replace("%%", "%")
    if not names:
        connection.execute(f"EXPLAIN {plain}".encode(), prepare=False)
        return
    # EXPLAIN (GENERIC_PLAN) begins with PostgreSQL 16. A plan of its own for NULL would leave out
    # what NULL decides. A statement that was refused is still prepared.
    connection.execute("SET LOCAL plan_cache_mode = force_generic_plan", prepare=False)
    connection.execute("DEALLOCATE ALL", prepare=False)
    connection.execute(f"PREPARE statement AS {plain}".encode(), prepare=False)
    values = ", ".join("NULL" for _ in names)
    connection.execute(f"EXPLAIN EXECUTE statement ({values})".encode(), prepare=False)


@pytest.mark.parametrize("role", PROGRAMS)
def test_a_role_may_run_every_statement_of_its_program(database_url: str, role: str) -> None:
    refused = []
    with psycopg.connect(as_role(database_url, role), autocommit=True) as connection:
        for name, text in statements(role):
            try:
                with connection.transaction(force_rollback=True):
                    run_without_rows(connection, text)
            except errors.InsufficientPrivilege as error:
                refused.append((role, name, str(error)))
    assert [each for each in refused if each[:2] not in NOT_RUN] == []


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
    names = {"relay:3", "sweep", "reconcile:3", "heartbeat:check", "failing:1"}
    stored = "SELECT name FROM outbox.progress WHERE name = ANY (%s)"
    with psycopg.connect(database_url, autocommit=True) as owner:
        for name in names:
            insert = "INSERT INTO outbox.progress (name) VALUES (%s) ON CONFLICT DO NOTHING"
            owner.execute(insert, (name,))
        with psycopg.connect(as_role(database_url, "outbox_api"), autocommit=True) as api:
            for name in names - {"failing:1"}:
                with pytest.raises(errors.InsufficientPrivilege, match=name):
                    api.execute("DELETE FROM outbox.progress WHERE name = %s", (name,))
            with pytest.raises(errors.InsufficientPrivilege):
                api.execute("DELETE FROM outbox.progress")
            assert {row[0] for row in owner.execute(stored, ([*names],))} == names
            api.execute("DELETE FROM outbox.progress WHERE name = 'failing:1'")
        assert {row[0] for row in owner.execute(stored, ([*names],))} == names - {"failing:1"}
    with psycopg.connect(as_role(database_url, "outbox_checker"), autocommit=True) as checker:
        assert checker.execute("DELETE FROM outbox.progress WHERE name = 'sweep'").rowcount == 1


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
