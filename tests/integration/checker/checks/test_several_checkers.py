"""Several checkers and several groups side by side."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

from checker.checks.check_observer import CheckObserver
from checker.checks.group_scheduler import GroupScheduler
from outbox.clock import SystemClock
from outbox.messages.message import State
from outbox.postgres.sessions.advisory_locks import PostgresAdvisoryLocks
from outbox.postgres.sessions.connections import Pool
from tests.fixtures_new_rows import NEW_HALVES
from tests.integration.checker.fixtures_checks import open_world
from tests.integration.checker.fixtures_producer import Check, Producer, in_turn, says

pytestmark = pytest.mark.postgres

NOBODY = "http://127.0.0.1:1/check"
CALLS = 8
HANGING, FLUSH = 10_000, 2000


async def test_two_checkers_over_one_group_decide_each_half_once(pool: Pool) -> None:
    async with (
        Producer(in_turn(says("UNKNOWN"), says("COMMIT"))) as producer,
        open_world(pool) as one,
        open_world(pool) as other,
    ):
        group = await one.group(producer.url, max_inflight=4)
        halves = await one.due(group, 40)
        for _ in range(3):
            await asyncio.gather(one.check(group), other.check(group))
            await one.pass_time(30)
    assert set(await one.states(halves)) == {State.COMMITTED}
    assert await one.rows(
        f"SELECT count(*), count(DISTINCT half_id) FROM outbox.op_message WHERE {NEW_HALVES}"
    ) == [(40, 40)]
    # The one UNKNOWN spends a check, unless the other checker has asked too and decided before it.
    assert await one.rows(
        f"SELECT count(*) FILTER (WHERE counted) <= 1 FROM outbox.check_attempt WHERE {NEW_HALVES}"
    ) == [(True,)]
    assert await one.rows(f"SELECT count(*) FROM outbox.check_queue WHERE {NEW_HALVES}") == [(0,)]


async def test_g8_a_hanging_group_leaves_another_groups_checks_alone(pool: Pool) -> None:
    both_hang = asyncio.Barrier(3)

    async def hang(_: web.Request, __: Check) -> web.StreamResponse:
        await both_hang.wait()
        await asyncio.sleep(30)
        raise AssertionError

    async with (
        Producer(hang) as hanging,
        Producer(says("COMMIT")) as healthy,
        open_world(pool, limit=4) as world,
    ):
        slow = await world.group(hanging.url, check_timeout_seconds=2, max_inflight=256)
        fast = await world.group(healthy.url, "member")
        await world.due(slow, 100)
        halves = await world.due(fast, 20)
        waiting = asyncio.create_task(world.check(slow))
        async with asyncio.timeout(2):
            await both_hang.wait()
            assert (await world.check(fast)).decided == 20
        assert not waiting.done()
        slow_round = await waiting
    assert set(await world.states(halves)) == {State.COMMITTED}
    assert (slow_round.asked, slow_round.more) == (2, True)


@pytest.mark.deep
async def test_a33_beside_a_hanging_backlog_healthy_groups_are_asked_as_if_it_were_not_there(
    pool: Pool, database_url: str
) -> None:
    """The delay is the order of calls; ``benchmarks.speed.checks`` measures it in seconds."""
    released, hanging_calls = asyncio.Event(), 0

    async def hang(request: web.Request, check: Check) -> web.StreamResponse:
        nonlocal hanging_calls
        hanging_calls += 1
        await released.wait()
        return await says("UNKNOWN")(request, check)

    async with (
        Producer(hang) as hanging,
        Producer(says("COMMIT")) as y,
        Producer(says("COMMIT")) as z,
        open_world(pool, limit=CALLS) as world,
    ):
        slow = await world.group(hanging.url, "x", check_timeout_seconds=900, max_inflight=256)
        for _ in range(HANGING // FLUSH):
            await world.prepare(slow, FLUSH)
        await world.pass_time(slow.transaction_timeout_seconds)
        while (await world.sweep()).queued:
            pass
        queued = f"SELECT count(*) FROM outbox.check_queue WHERE {NEW_HALVES}"
        assert await world.rows(queued) == [(HANGING,)]
        halves = [
            await world.due(await world.group(healthy.url, name, max_inflight=1), 50)
            for healthy, name in ((y, "y"), (z, "z"))
        ]
        locks = PostgresAdvisoryLocks(database_url)
        facts = CheckObserver(world.metrics)
        rounds = GroupScheduler(world.check_back, world.queue, locks, SystemClock(), facts)
        async with asyncio.timeout(300):
            while set(await world.states([*halves[0], *halves[1]])) != {State.COMMITTED}:
                await rounds.step()
        asked = [[check["message_id"] for check in healthy.asked] for healthy in (y, z)]
        assert asked == [[str(half.message_id) for half in due] for due in halves]
        assert (hanging_calls, released.is_set()) == (CALLS // 2, False)
        released.set()
        await rounds.drain()
        await locks.close()
