"""SQL mode: a message is published although its leaf is removed or made at that moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from outbox.messages.manifest import Position
from outbox.messages.message import State
from outbox.messages.message_id import HalfId
from outbox.postgres.messages.message_status import read_statuses
from outbox.postgres.messages.sql_outbox import PostgresSqlOutbox
from outbox.postgres.relay.commit_reader import CommitReader
from outbox.postgres.sessions.connections import connect
from tests.fixtures_waiting import wait_for
from tests.integration.checker.fixtures_checks import World
from tests.integration.checker.maintenance.fixtures_old_leaves import (
    WITHOUT_LEAF,
    ended,
    first_leaf_is_gone,
    grow_old,
    retire,
    sessions_wait,
)

pytestmark = pytest.mark.postgres

ROLE = "late_shop"
NEW_ROLE = f"CREATE ROLE {ROLE} LOGIN PASSWORD 'shop'"
ALLOW = "SELECT outbox.allow_publish(%(role)s, 'account', ARRAY['points-earned'])"
NO_ROLE = f"DROP OWNED BY {ROLE}; DROP ROLE {ROLE}"
PUBLISH = "SELECT outbox.publish('account', 'points-earned', 'late', key => 'member-1')"
PUBLISHED = "SELECT half_id FROM outbox.plain_message"
WAITING = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock'
"""


@pytest.fixture
async def producer(world: World, database_url: str) -> AsyncIterator[psycopg.AsyncConnection]:
    """Yield a session of a role that may only publish; its group has ended two messages."""
    await ended(world, transaction_id="order-7")
    await world.execute(NEW_ROLE)
    await world.execute(ALLOW, role=ROLE)
    role = make_conninfo(database_url, user=ROLE, password="shop")
    async with await psycopg.AsyncConnection.connect(role) as session:
        yield session
    await world.execute(NO_ROLE)


def waits_for_a_lock(database_url: str) -> bool:
    with psycopg.connect(database_url) as connection:
        row = connection.execute(WAITING).fetchone()
    return row is not None and row[0] > 0


def relayed(database_url: str, half_id: HalfId) -> bytes | None:
    """Return the value that the relay reads of the newest commit."""
    with connect(database_url, "test") as session:
        [(xid,)] = session.execute("SELECT max(xid) FROM outbox.commit_log").fetchall()
    reader = CommitReader(database_url, half_id & 15, batch_max=10)
    found = reader.read(Position(xid - 1, 0))
    reader.close()
    (message,) = found.messages
    assert message.half_id == half_id
    return message.value


async def test_a_message_that_is_admitted_while_its_leaf_is_removed_is_published(
    world: World, database_url: str, producer: psycopg.AsyncConnection
) -> None:
    """A transaction id that a session has locked stops the removal behind its look at the leaf."""
    await producer.execute(PUBLISH)
    await grow_old(world, "relay:")
    async with world.pool.connection() as other, other.transaction():
        await other.execute("SELECT FROM outbox.transaction_key FOR UPDATE")
        removal = asyncio.create_task(retire(world))
        await asyncio.to_thread(wait_for, lambda: waits_for_a_lock(database_url))
        await producer.commit()
        ((half_id,),) = await world.rows(PUBLISHED)
        assert await PostgresSqlOutbox(world.checker).admit() == 1
    assert await removal == [0]
    assert await first_leaf_is_gone(world)
    async with world.pool.connection() as connection:
        statuses = await read_statuses(connection, [half_id])
    assert [each.state for each in statuses.values()] == [State.COMMITTED]
    assert relayed(database_url, half_id) == b"late"


async def test_a_message_that_is_admitted_while_its_leaf_is_made_is_published(
    world: World, database_url: str, producer: psycopg.AsyncConnection
) -> None:
    await producer.execute(PUBLISH)
    await producer.commit()
    ((half_id,),) = await world.rows(PUBLISHED)
    await world.execute(WITHOUT_LEAF)
    with psycopg.connect(database_url) as maker:
        maker.execute("SELECT outbox.create_leaf(outbox.watermark() >> 20)")
        admission = asyncio.create_task(PostgresSqlOutbox(world.checker).admit())
        await sessions_wait(world, 1)
        maker.commit()
    assert await admission == 1
    assert relayed(database_url, half_id) == b"late"
