"""A role that is dropped and created anew has another identity: old sessions have no right left."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from outbox.errors import DatabaseRefused
from outbox.postgres.sessions.availability import available
from outbox.postgres.sessions.connections import make_pool
from tests.fixtures_databases import as_role

pytestmark = pytest.mark.postgres

ROLE = "recreated"
CREATE = f"CREATE ROLE {ROLE} LOGIN PASSWORD '{ROLE}' IN ROLE outbox_checker"
DROP = f"DROP ROLE {ROLE}"
READS = "SELECT count(*) FROM outbox.topic"


@pytest.fixture
def administrator(database_url: str) -> Iterator[psycopg.Connection]:
    """Yield an administrator's session; the role exists during the test."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(CREATE)
        yield connection
        connection.execute(DROP)


def recreate(administrator: psycopg.Connection) -> None:
    administrator.execute(DROP)
    administrator.execute(CREATE)


async def test_a_pool_logs_in_again(database_url: str, administrator: psycopg.Connection) -> None:
    async with make_pool(as_role(database_url, ROLE), "test", pool_max=1, pool_min=1) as pool:
        async with pool.connection() as session:
            await session.execute(READS)
        recreate(administrator)
        with pytest.raises(DatabaseRefused):
            async with available(), pool.connection() as session:
                await session.execute(READS)
        async with available(), pool.connection() as session:
            await session.execute(READS)
