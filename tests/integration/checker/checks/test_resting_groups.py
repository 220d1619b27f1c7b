"""Paused and deleted groups, and halves at their max age: no writes, and nothing is forgotten."""

from __future__ import annotations

import pytest

from checker.checks.check_back import CheckRound
from outbox.checks.breaker import BreakerState
from outbox.checks.check_round import GroupDue
from outbox.checks.producer_group import ProducerGroup
from outbox.messages.message import State
from tests.integration.checker.fixtures_checks import World
from tests.integration.checker.fixtures_producer import Producer, says, status

pytestmark = pytest.mark.postgres

OWN = "(SELECT id FROM outbox.producer_group WHERE name = 'account')"
PAUSE = "UPDATE outbox.producer_group SET paused = true WHERE name = 'account'"
RESUME = "UPDATE outbox.producer_group SET paused = false WHERE name = 'account'"
LATER = "UPDATE outbox.check_breaker SET probe_at = probe_at + make_interval(secs => %(by)s)"
WRITTEN = f"""
SELECT (SELECT count(*) FROM outbox.check_queue WHERE producer_group_id = {OWN}),
    (SELECT max(id) FROM outbox.check_queue WHERE producer_group_id = {OWN}),
    (SELECT sum(position) FROM outbox.check_class WHERE producer_group_id = {OWN})
"""
QUEUED = f"SELECT count(*) FROM outbox.check_queue WHERE producer_group_id = {OWN}"
MAX_AGE = 3600


async def is_shown(world: World, group: ProducerGroup) -> GroupDue:
    """Return a group with waiting halves as the scheduler sees it."""
    groups = {each.producer_group_id: each for each in await world.queue.due_groups()}
    return groups[group.id]


async def test_a_paused_group_writes_nothing_and_is_asked_at_once_when_it_resumes(
    world: World,
) -> None:
    async with Producer(says("COMMIT")) as producer:
        group = await world.group(producer.url)
        halves = await world.due(group, 20)
        await world.execute(PAUSE)
        before = await world.rows(WRITTEN)
        for _ in range(10):
            assert await world.check(group) == CheckRound()
            await world.pass_time(group.check_interval_seconds)
        assert await world.rows(WRITTEN) == before
        assert (await is_shown(world, group)).rests
        await world.execute(RESUME)
        assert (await world.check(group)).asked == 20
    assert set(await world.states(halves)) == {State.COMMITTED}
    assert await world.rows(QUEUED) == [(0,)]


async def test_a_half_at_its_max_age_is_parked_behind_an_open_breaker(world: World) -> None:
    async with Producer(status(500)) as producer:
        group = await world.group(producer.url, max_age_seconds=MAX_AGE, check_interval_seconds=1)
        old = await world.due(group, 12)
        await world.check(group)
        assert await world.breaker(group) is BreakerState.OPEN
        await world.execute(LATER, by=MAX_AGE)
        await world.pass_time(MAX_AGE)
        young = await world.due(group, 3)
        asked = len(producer.asked)
        assert (await is_shown(world, group)).aged
        assert (await world.check(group)).parked == 12
    assert len(producer.asked) == asked
    assert set(await world.states(old)) == {State.PARKED}
    assert set(await world.states(young)) == {State.PREPARED}
    assert await world.rows(QUEUED) == [(3,)]
    assert not (await is_shown(world, group)).aged


async def test_a_clock_that_jumps_ahead_parks_no_half_before_it_is_asked_about(
    world: World,
) -> None:
    """So does a pause of all checkers: time has passed without a question."""
    async with Producer(says("COMMIT")) as producer:
        group = await world.group(producer.url, max_age_seconds=MAX_AGE)
        halves = await world.due(group, 2)
        await world.pass_time(2 * MAX_AGE)
        assert (await world.check(group)).decided == 2
        (silent,) = await world.due(group)
        await world.pass_time(2 * MAX_AGE)
        producer.answer = says("UNKNOWN")
        round_ = await world.check(group)
    assert (round_.asked, round_.parked) == (1, 1)
    assert await world.states([*halves, silent]) == [State.COMMITTED] * 2 + [State.PARKED]
