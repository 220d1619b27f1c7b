"""Leaves are made in time, under any reader, and rows without a leaf get one."""

from __future__ import annotations

import asyncio
import time

import psycopg
import pytest

from checker.maintenance.partition_maintenance import (
    EVERY_SECONDS,
    RETRY_SECONDS,
)
from outbox.messages.message import Ended, HalfMessage, State
from outbox.postgres.maintenance.partitions import PostgresPartitions
from outbox.postgres.sessions.connections import conninfo
from tests.fixtures_databases import as_role
from tests.integration.checker.fixtures_checks import World
from tests.integration.checker.maintenance.fixtures_old_leaves import (
    NEXT_LEAF,
    URL,
    WITHOUT_LEAF,
    maintenance,
    sessions_wait,
)

pytestmark = pytest.mark.postgres

LIVENESS_SECONDS = 10
READS_ALL = "SELECT count(*) FROM outbox.half_message"
LEAVES = """
SELECT count(*)::int FROM pg_inherits WHERE inhparent = 'outbox.half_message'::regclass
"""
ALONE = """
SELECT (SELECT count(*) FROM outbox.half_message_default WHERE half_id >> 35 >= %(leaf)s)::int,
    (SELECT count(*) FROM outbox.op_message_default WHERE half_id >> 35 >= %(leaf)s)::int,
    (SELECT count(*) FROM outbox.commit_log_default WHERE xid >> 20 >= %(leaf)s)::int
"""
IDLE_LIMIT = "idle_in_transaction_session_timeout"
MANY = """
INSERT INTO outbox.half_message
    (half_id, nonce, prepared_at, content_digest, producer_group_id, topic_id)
SELECT %(first)s + n * 16, n, now(), n, 1, 1 FROM generate_series(0, 1500) AS n
"""
LEAF_EXISTS = "SELECT to_regclass('outbox.half_message_' || %(leaf)s) IS NOT NULL"
STILL_BELOW = "SELECT %(xid)s >= outbox.watermark()"


def alarm(world: World, table: str = "half_message") -> float:
    return float(world.metrics["default_leaf_rows"].labels(table)._value.get())


async def watermark_passes(world: World, half: HalfMessage) -> bool:
    """Return whether the watermark passes a half before a generous deadline."""
    deadline = time.monotonic() + LIVENESS_SECONDS
    while time.monotonic() < deadline:
        if not (await world.rows(STILL_BELOW, xid=half.half_id >> 15))[0][0]:
            return True
        await asyncio.sleep(0.02)
    return False


async def without_leaf(world: World) -> list[HalfMessage]:
    """Return a committed, a rolled back and an undecided half in the default leaf."""
    group = await world.group(URL)
    await world.execute(WITHOUT_LEAF)
    halves = await world.prepare(group, 3)
    await world.end(halves[0], "COMMIT")
    await world.end(halves[1], "ROLLBACK")
    assert await world.rows(ALONE, leaf=world.first_leaf) == [(3, 2, 1)]
    return halves


async def test_a_leaf_that_falls_due_under_a_long_reader_stops_no_watermark(
    world: World, database_url: str
) -> None:
    group = await world.group(URL)
    leaves = PostgresPartitions(world.checker)
    ((before,),) = await world.rows(LEAVES)
    with psycopg.connect(database_url) as reader:
        reader.execute(READS_ALL)
        creation = asyncio.create_task(leaves.create_ahead(4))
        gave_up, _ = await asyncio.wait([creation], timeout=LIVENESS_SECONDS)
        (half,) = await world.prepare(group)
        moved = await watermark_passes(world, half)
        blocked_still = await maintenance(world).step() if gave_up else None
    assert (moved, len(gave_up), blocked_still) == (True, 1, RETRY_SECONDS)
    assert await creation > 0, "it says that leaves are missing"
    assert await world.rows(LEAVES) == [(before,)]
    assert await maintenance(world).step() == EVERY_SECONDS
    assert (await world.rows(LEAVES))[0][0] > before


async def test_a_prepare_whose_process_is_frozen_stops_the_watermark_for_a_minute_only(
    world: World, database_url: str
) -> None:
    """The minute is half a second here."""
    group = await world.group(URL)
    url = conninfo(as_role(database_url, "outbox_api"), "api")
    frozen = await psycopg.AsyncConnection.connect(url, autocommit=True)
    limit = await (await frozen.execute(f"SHOW {IDLE_LIMIT}")).fetchone()
    assert limit == ("1min",)
    await frozen.execute(f"SET {IDLE_LIMIT} = '500ms'")
    await frozen.execute("BEGIN; SELECT outbox.current_xid()")
    (half,) = await world.prepare(group)
    assert await world.rows(STILL_BELOW, xid=half.half_id >> 15) == [(True,)]
    assert await watermark_passes(world, half)
    await frozen.close()


async def test_rows_without_a_leaf_are_moved_to_one_and_nothing_of_them_changes(
    world: World,
) -> None:
    halves = await without_leaf(world)
    states = await world.states(halves)
    assert await maintenance(world).step() == EVERY_SECONDS
    assert await world.rows(ALONE, leaf=world.first_leaf) == [(0, 0, 0)]
    assert await world.states(halves) == states
    assert await world.end(halves[2], "COMMIT")
    assert alarm(world) == 0
    await world.execute(NEXT_LEAF)
    (next_one,) = await world.prepare(await world.group(URL, "next"))
    assert await world.states([next_one]) == [State.PREPARED]
    assert await world.rows(ALONE, leaf=world.first_leaf) == [(0, 0, 0)], "partitioning goes on"


async def test_what_waits_while_its_leaf_is_made_is_stored_there(
    world: World, database_url: str
) -> None:
    halves = await without_leaf(world)
    group = await world.group(URL, "waiting")
    with psycopg.connect(database_url) as maker:
        maker.execute("SELECT outbox.create_leaf(outbox.watermark() >> 20)")
        preparing = asyncio.create_task(world.prepare(group))
        ending = asyncio.create_task(world.end(halves[2], "COMMIT"))
        await sessions_wait(world, 2)
        maker.commit()
    (half,), ended = await preparing, await ending
    assert isinstance(ended, Ended), ended
    assert ended.status.state is State.COMMITTED, ended
    assert await world.states([half, halves[2]]) == [State.PREPARED, State.COMMITTED]
    assert await world.rows(ALONE, leaf=world.first_leaf) == [(0, 0, 0)]


async def test_rows_too_many_for_one_move_stay_with_an_alarm_until_an_operator_moves_them(
    world: World,
) -> None:
    halves = await without_leaf(world)
    ((leaf,),) = await world.rows("SELECT outbox.watermark() >> 20")
    await world.execute(MANY, first=max(half.half_id for half in halves) + (1 << 15))
    assert await maintenance(world).step() == EVERY_SECONDS
    assert alarm(world) == 1
    assert await world.rows(LEAF_EXISTS, leaf=leaf) == [(False,)]
    assert await world.rows(LEAF_EXISTS, leaf=leaf + 1) == [(True,)], "partitioning goes on"
    await world.execute("SELECT outbox.create_leaf(%(leaf)s, 1000000)", leaf=leaf)
    await maintenance(world).step()
    assert (alarm(world), await world.rows(ALONE, leaf=world.first_leaf)) == (0, [(0, 0, 0)])
    assert len(await world.states(halves)) == 3
