"""The database pool of one command."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg

from outbox.postgres.sessions.availability import unavailable_on
from outbox.postgres.sessions.connections import Pool, connect, make_pool

CONNECTIONS = 2


@asynccontextmanager
async def command_pool(database_url: str) -> AsyncIterator[Pool]:
    """Open a pool for one command.

    Raises DatabaseUnavailable with the reason if PostgreSQL refuses a connection. Without this
    connection the pool would try again for seconds, log each attempt, and name no reason.
    """
    with unavailable_on(psycopg.OperationalError):
        connect(database_url, "cli").close()
    async with make_pool(database_url, "cli", pool_max=CONNECTIONS, pool_min=1) as pool:
        yield pool
