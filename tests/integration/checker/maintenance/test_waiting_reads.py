"""An operator's read that waits while rows move to another leaf finds them afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from outbox.messages.message import HalfMessage, State
from outbox.operators.message_view import MessageFilter
from outbox.postgres.operators.message_browser import PostgresMessageBrowser
from outbox.postgres.sessions.connections import make_pool
from tests.integration.checker.fixtures_checks import World
from tests.integration.checker.maintenance.fixtures_old_leaves import (
    NEXT_LEAF,
    URL,
    grow_old,
    sessions_wait,
)

pytestmark = pytest.mark.postgres

RETIRE_LEAF = "SELECT outbox.lock_leaves(), outbox.detach_leaf(%(leaf)s, %(kept)s::int8[])"


@pytest.fixture
async def browser(world: World) -> AsyncIterator[PostgresMessageBrowser]:
    """Return the browser as the API opens it, with its role."""
    role = make_conninfo(str(world.pool.conninfo), user="outbox_api", password="outbox_api")
    async with make_pool(role, "test", pool_max=4) as pool:
        yield PostgresMessageBrowser(pool)


async def reads_while(
    world: World, browser: PostgresMessageBrowser, moving: psycopg.Connection, half: HalfMessage
) -> tuple[State, list[str], list[str]]:
    """Start three reads that wait for a move, commit it, and return what they find."""
    wanted = MessageFilter(groups=None, limit=10)
    reads = asyncio.gather(
        browser.get(half.half_id, half.nonce, None),
        browser.history(half.half_id, half.nonce),
        browser.page(wanted),
    )
    await sessions_wait(world, 3)
    moving.commit()
    message, history, page = await reads
    return (
        message.state,
        [event["type"] for event in history],
        [each.message_id for each in page.data if each.message_id == str(half.message_id)],
    )


async def test_a_read_that_waits_while_a_leaf_is_retired_finds_what_is_kept_of_it(
    world: World, database_url: str, browser: PostgresMessageBrowser
) -> None:
    (half,) = await world.prepare(await world.group(URL))
    await grow_old(world)
    await world.execute(NEXT_LEAF)
    with psycopg.connect(database_url) as retiring:
        given = {"leaf": half.half_id >> 35, "kept": [half.half_id]}
        retiring.execute(RETIRE_LEAF, given)
        found = await reads_while(world, browser, retiring, half)
    assert found == (State.PREPARED, ["prepared"], [str(half.message_id)])
