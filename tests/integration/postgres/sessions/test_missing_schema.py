"""A database that was never migrated is one that is behind, whatever a statement misses in it."""

from __future__ import annotations

import psycopg
import pytest

from outbox.errors import SchemaBehind
from outbox.postgres.sessions.availability import available, unavailable_on

pytestmark = pytest.mark.postgres


@pytest.mark.parametrize("statement", ["SELECT FROM absent.relation", "SELECT absent.routine()"])
async def test_what_is_missing_with_its_whole_schema_is_a_missing_migration(
    database_url: str, statement: str
) -> None:
    async with await psycopg.AsyncConnection.connect(database_url) as connection:
        with pytest.raises(SchemaBehind, match="absent"):
            async with available():
                await connection.execute(statement)


def test_a_session_that_waits_for_its_statements_says_the_same(database_url: str) -> None:
    with (
        psycopg.connect(database_url) as connection,
        pytest.raises(SchemaBehind, match=r'^relation "absent\.relation" does not exist$'),
        unavailable_on(psycopg.OperationalError),
    ):
        connection.execute("SELECT FROM absent.relation")
