"""Several checkers and several groups side by side."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

from outbox.messages.message import State
from outbox.postgres.sessions.connections import Pool
from tests.integration.checker.fixtures_checks import open_world
from tests.integration.checker.fixtures_producer import Check, Producer, in_turn, says

pytestmark = pytest.mark.postgres

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
    assert await one.rows("SELECT count(*), count(DISTINCT half_id) FROM outbox.op_message") == [
        (40, 40)
    ]
    # The one UNKNOWN spends a check, unless the other checker has asked too and decided before it.
    assert await one.rows(
        "SELECT count(*) FILTER (WHERE counted) <= 1 FROM outbox.check_attempt"
    ) == [(True,)]
    assert await one.rows("SELECT count(*) FROM outbox.check_queue") == [(0,)]


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
        slow = await world.group(hanging.url, check_timeout_seconds=5, max_inflight=256)
        fast = await world.group(healthy.url, "member")
        await world.due(slow, 100)
        halves = await world.due(fast, 20)
        waiting = asyncio.create_task(world.check(slow))
        await both_hang.wait()
        while (await world.check(fast)).more:
            pass
        assert set(await world.states(halves)) == {State.COMMITTED}
        assert not waiting.done()
        slow_round = await waiting
    assert (slow_round.asked, slow_round.more) == (2, True)
