"""SQL mode: a message is published although its leaf is removed at that moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from outbox.messages.message import State
from outbox.postgres.messages.message_status import statuses_now
from outbox.postgres.messages.sql_outbox import PostgresSqlOutbox
from tests.integration.api.fixtures_rows import until_a_session_waits
from tests.integration.checker.fixtures_checks import World
from tests.integration.checker.maintenance.fixtures_old_leaves import (
    ended,
    first_leaf_is_gone,
    grow_old,
    relayed,
    retire,
)

pytestmark = pytest.mark.postgres

ROLE = "late_shop"
NEW_ROLE = f"CREATE ROLE {ROLE} LOGIN PASSWORD 'shop'"
ALLOW = "SELECT outbox.allow_publish(%(role)s, 'account', ARRAY['points-earned'])"
NO_ROLE = f"DROP OWNED BY {ROLE}; DROP ROLE {ROLE}"
PUBLISH = "SELECT outbox.publish('account', 'points-earned', 'late', key => 'member-1')"
PUBLISHED = "SELECT half_id FROM outbox.plain_message"


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


async def test_a_message_that_is_admitted_while_its_leaf_is_removed_is_published(
    world: World, database_url: str, producer: psycopg.AsyncConnection
) -> None:
    """A transaction id that a session has locked stops the removal behind its look at the leaf."""
    await producer.execute(PUBLISH)
    await grow_old(world, "relay:")
    async with world.pool.connection() as other, other.transaction():
        await other.execute("SELECT FROM outbox.transaction_key FOR UPDATE")
        removal = asyncio.create_task(retire(world))
        await until_a_session_waits(world.pool)
        await producer.commit()
        ((half_id,),) = await world.rows(PUBLISHED)
        assert await PostgresSqlOutbox(world.checker).admit() == 1
    assert await removal == [0]
    assert await first_leaf_is_gone(world)
    statuses = await statuses_now(world.pool, [half_id])
    assert [each.state for each in statuses.values()] == [State.COMMITTED]
    assert relayed(database_url, half_id) == b"late"
