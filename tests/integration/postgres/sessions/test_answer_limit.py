"""A server that is stopped is given up: TCP works, and no limit of the server ends the wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from outbox.postgres.sessions.answer_limit import NoAnswer
from outbox.postgres.sessions.connections import Pool, connect, make_pool
from tests.fixtures_frozen import frozen

pytestmark = pytest.mark.postgres

LIMIT = 0.3
PID = "SELECT pg_backend_pid()"


@pytest.fixture
async def limited(database_url: str) -> AsyncIterator[Pool]:
    """Yield a pool of two connections with a short limit."""
    async with make_pool(database_url, "limited", pool_max=2, answer_seconds=LIMIT) as opened:
        yield opened


async def stop_one(limited: Pool) -> int:
    """Let one session of the pool be stopped while it is asked; return its process."""
    async with limited.connection() as connection:
        pid = connection.info.backend_pid
        with frozen([pid]), pytest.raises(NoAnswer, match=r"within 0\.3 s"):
            await connection.execute(PID)
    return pid


async def test_a_session_without_an_answer_is_closed_and_another_one_is_lent(limited: Pool) -> None:
    pid = await stop_one(limited)
    async with limited.connection() as connection:
        row = await (await connection.execute(PID)).fetchone()
    assert row is not None
    assert row[0] != pid


def test_a_thread_that_waits_for_an_answer_is_freed(database_url: str) -> None:
    connection = connect(database_url, "limited", answer_seconds=LIMIT)
    with frozen([connection.info.backend_pid]), pytest.raises(NoAnswer):
        connection.execute(PID)
    assert connection.closed


async def test_a_cancelled_exchange_does_not_wait_for_the_server(limited: Pool) -> None:
    async def ask() -> None:
        async with limited.connection() as connection:
            connection.answer_seconds = 60
            with frozen([connection.info.backend_pid]):
                asking.set()
                await connection.execute(PID)

    asking = asyncio.Event()
    task = asyncio.create_task(ask())
    await asking.wait()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
