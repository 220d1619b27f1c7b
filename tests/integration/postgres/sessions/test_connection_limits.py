"""Neighbours may leave us no connection: what waits for one says why there is none."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from devservers.postgres import EmbeddedPostgres
from outbox.errors import DatabaseUnavailable
from outbox.postgres.sessions.availability import available
from outbox.postgres.sessions.connections import make_pool

pytestmark = pytest.mark.postgres


@pytest.fixture
def full(postgres_server: EmbeddedPostgres, database_url: str) -> Iterator[str]:
    """Yield the database's URL with a role that may have one connection."""
    with psycopg.connect(postgres_server.database_url, autocommit=True) as connection:
        connection.execute("CREATE ROLE full_up LOGIN PASSWORD 'full' CONNECTION LIMIT 1")
        yield make_conninfo(database_url, user="full_up", password="full")
        connection.execute("DROP ROLE full_up")


async def test_a_pool_that_gets_no_connection_names_the_reason(full: str) -> None:
    async with make_pool(full, "test", pool_max=1) as pool:
        with psycopg.connect(full), pytest.raises(DatabaseUnavailable, match="too many connec"):
            async with available(), pool.connection(timeout=1):
                pass
        async with pool.connection(timeout=10) as connection:
            await connection.execute("SELECT")
        assert pool.failure is None
