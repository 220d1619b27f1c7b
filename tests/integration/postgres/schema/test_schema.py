"""The migrated schema refuses what the state machine refuses."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import errors

from devservers.postgres import EmbeddedPostgres
from tests.fixtures_databases import drop_database, make_database, migrate

pytestmark = pytest.mark.postgres

WITHOUT_IDENTITY = """
SELECT c.relname FROM pg_class c
WHERE c.relnamespace = 'outbox'::regnamespace AND c.relkind IN ('r', 'p') AND c.relreplident <> 'f'
    AND NOT (c.relreplident = 'd' AND EXISTS (
        SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary))
"""


def test_each_table_and_each_leaf_has_an_identity_for_replication(database_url: str) -> None:
    """A publication FOR ALL TABLES, as Debezium makes one, refuses UPDATE and DELETE without it."""
    with psycopg.connect(database_url) as connection:
        assert connection.execute(WITHOUT_IDENTITY).fetchall() == []


def test_migrating_twice_changes_nothing(database_url: str) -> None:
    migrate(database_url)
    with psycopg.connect(database_url) as connection:
        row = connection.execute("SELECT count(*) FROM outbox.installation").fetchone()
    assert row == (1,)


@pytest.mark.parametrize(
    ("statement", "refusal"),
    [
        ("INSERT INTO outbox.op_message VALUES (1, 1, now(), 1, 4)", errors.CheckViolation),
        ("INSERT INTO outbox.op_message VALUES (1, 1, now(), 2, 5)", errors.CheckViolation),
        ("INSERT INTO outbox.op_message VALUES (1, 1, now(), 3, 1)", errors.CheckViolation),
        (
            "INSERT INTO outbox.op_message VALUES (1, 1, now(), 1, 1), (1, 1, now(), 2, 1)",
            errors.UniqueViolation,
        ),
        (
            "INSERT INTO outbox.commit_log VALUES (16, 1, now(), '{1}', '{1}')",
            errors.CheckViolation,
        ),
        ("INSERT INTO outbox.commit_log VALUES (1, 1, now(), '{}', '{}')", errors.CheckViolation),
        (
            "INSERT INTO outbox.commit_log VALUES (1, 1, now(), '{1,2}', '{1}')",
            errors.CheckViolation,
        ),
    ],
)
def test_the_tables_refuse_what_the_state_machine_refuses(
    database_url: str, statement: str, refusal: type[psycopg.Error]
) -> None:
    with psycopg.connect(database_url) as connection, pytest.raises(refusal):
        connection.execute(statement)


def test_rows_are_stored_in_the_leaf_of_their_transaction(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        row = connection.execute(
            "INSERT INTO outbox.op_message VALUES (outbox.watermark() << 15, 1, now(), 1, 1)"
            " RETURNING tableoid::regclass::text, outbox.watermark() >> 20"
        ).fetchone()
    assert row is not None
    assert row[0] == f"op_message_{row[1]}"


SHARDS_IN_USE = "SELECT shards FROM outbox.installation"


def test_a_new_installation_uses_few_shards(postgres_server: EmbeddedPostgres) -> None:
    server_url = postgres_server.database_url
    url = make_database(server_url, None)
    migrate(url)
    with psycopg.connect(url) as connection:
        assert connection.execute(SHARDS_IN_USE).fetchone() == (2,)
    drop_database(server_url, url)
