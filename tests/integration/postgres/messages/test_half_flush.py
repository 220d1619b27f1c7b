"""A flush keeps its promises when a step of it fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest

from outbox.messages.message import Prepared
from outbox.postgres.messages.half_store import PostgresHalfStore
from outbox.postgres.sessions.connections import PLAN_ONCE, Pool, make_pool
from tests.fixtures_messages import make_group, make_message, store_group, store_topic

pytestmark = pytest.mark.postgres

WAITING = "SELECT FROM pg_locks WHERE relation = 'outbox.producer_group'::regclass AND NOT granted"


@pytest.fixture
async def one(database_url: str) -> AsyncIterator[Pool]:
    """Yield a pool of one connection, so that each call has the same session."""
    async with make_pool(database_url, "test", pool_max=1, plans=PLAN_ONCE) as opened:
        await store_group(opened, make_group())
        await store_topic(opened, "points-earned")
        yield opened


async def until_a_session_waits(connection: psycopg.Connection) -> None:
    async with asyncio.timeout(60):
        while not await asyncio.to_thread(lambda: connection.execute(WAITING).fetchall()):
            pass


async def count(pool: Pool, table: str) -> int:
    async with pool.connection() as connection:
        cursor = await connection.execute(f"SELECT count(*) FROM outbox.{table}".encode())
        row = await cursor.fetchone()
    assert row is not None
    return int(row[0])


async def test_a_session_that_lost_its_prepared_statements_gets_them_again(one: Pool) -> None:
    store = PostgresHalfStore(one)
    await store.prepare([make_message()])
    async with one.connection() as connection:
        await connection.execute("DEALLOCATE ALL")
    assert isinstance((await store.prepare([make_message()]))[0], Prepared)
    assert isinstance((await PostgresHalfStore(one).prepare([make_message()]))[0], Prepared)


async def test_a_flush_that_was_cancelled_stores_nothing_and_leaves_a_usable_pool(
    one: Pool, database_url: str
) -> None:
    store = PostgresHalfStore(one)
    await store.prepare([make_message()])
    before = await count(one, "half_message")
    with psycopg.connect(database_url) as deleting:
        deleting.execute("LOCK TABLE outbox.producer_group IN ACCESS EXCLUSIVE MODE")
        flush = asyncio.create_task(store.prepare([make_message()]))
        await until_a_session_waits(deleting)
        flush.cancel()
        with pytest.raises(asyncio.CancelledError):
            await flush
    assert await count(one, "half_message") == before
    assert isinstance((await store.prepare([make_message()]))[0], Prepared)
    assert await count(one, "half_message") == before + 1
