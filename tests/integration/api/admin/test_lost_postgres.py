"""An API whose PostgreSQL is away says so in its log, though nobody sends a request."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

import psycopg
import pytest

from api.admin.bulk_runner import BulkRunner
from devservers.postgres import EmbeddedPostgres
from outbox.postgres.operators.bulk_actions import PostgresBulkActions
from outbox.postgres.sessions.connections import Pool

pytestmark = pytest.mark.postgres
AWAY = (
    "ALTER DATABASE {0} ALLOW_CONNECTIONS false",
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{0}'",
)
BACK = "ALTER DATABASE {0} ALLOW_CONNECTIONS true"


async def test_the_loss_and_the_return_are_one_line_each(
    postgres_server: EmbeddedPostgres,
    database_url: str,
    pool: Pool,
    capsys: pytest.CaptureFixture[str],
) -> None:
    name = urlsplit(database_url).path.lstrip("/")
    runner, stop = BulkRunner(PostgresBulkActions(pool)), asyncio.Event()
    written = ""

    async def logged(event: str) -> None:
        nonlocal written
        async with asyncio.timeout(60):
            while event not in written:
                runner.wake()
                await asyncio.sleep(0.1)
                written += capsys.readouterr().out

    running = asyncio.create_task(runner.run(stop))
    with psycopg.connect(postgres_server.database_url, autocommit=True) as administrator:
        for statement in AWAY:
            administrator.execute(statement.format(name).encode())
        await logged("dependency_lost")
        administrator.execute(BACK.format(name).encode())
        await logged("dependency_back")
    stop.set()
    runner.wake()
    await running
    assert (written.count("dependency_lost"), written.count("dependency_back")) == (1, 1)
