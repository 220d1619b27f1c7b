"""PostgreSQL's clock is set: a check is late by its own delay at most, and no age is wrong."""

from __future__ import annotations

import pytest

from outbox.checks.breaker import BreakerState
from outbox.checks.producer_group import ProducerGroup
from tests.integration.checker.fixtures_checks import World
from tests.integration.checker.fixtures_producer import Producer, says, status

pytestmark = pytest.mark.postgres

NOBODY = "http://127.0.0.1:1/check"
STEP = 3600
YEAR = 365 * 86_400
FAILING = 12


async def is_due(world: World, group: ProducerGroup) -> bool:
    """Return whether the checker starts a round of the group."""
    due = {each.producer_group_id: each for each in await world.queue.due_groups()}
    return group.id in due and due[group.id].overdue_seconds >= 0


async def is_old(world: World, group: ProducerGroup) -> bool:
    """Return whether a half of the group has reached its max age."""
    return group.id in await world.queue.aged_groups()


async def test_the_sweep_does_not_wait_for_the_time_of_a_half_from_before_the_step(
    world: World,
) -> None:
    group = await world.group(NOBODY)
    (before,) = await world.prepare(group)
    await world.pass_time(-STEP)
    (after,) = await world.prepare(group)
    assert (await world.sweep()).queued == 1, "the young half waits for the next sweep"
    await world.pass_time(1)
    assert (await world.sweep()).queued == 1
    for half in (before, after):
        _, _, seconds = await world.waiting(half)
        assert 0 < seconds <= group.transaction_timeout_seconds


async def test_a_half_swept_after_the_step_is_asked_about_when_its_immunity_is_over(
    world: World,
) -> None:
    async with Producer(says("COMMIT")) as producer:
        group = await world.group(producer.url)
        await world.prepare(group)
        await world.pass_time(-STEP)
        await world.sweep()
        assert (await world.check(group)).asked == 0
        await world.pass_time(group.transaction_timeout_seconds)
        assert (await world.check(group)).decided == 1


async def test_waiting_halves_wait_once_more_for_their_interval_and_delay_no_other(
    world: World,
) -> None:
    async with Producer(says("UNKNOWN")) as producer:
        group = await world.group(producer.url)
        await world.due(group, 3)
        await world.check(group)
        await world.pass_time(-STEP)
        assert await is_due(world, group)
        early = await world.check(group)
        assert (early.asked, early.put_back) == (0, 3)
        assert not await is_due(world, group)
        await world.pass_time(group.check_interval_seconds)
        assert await is_due(world, group)
        assert (await world.check(group)).asked == 3
    assert len(producer.asked) == 6


async def test_a_step_shorter_than_the_interval_makes_a_check_late_and_never_early(
    world: World,
) -> None:
    async with Producer(says("UNKNOWN")) as producer:
        group = await world.group(producer.url)
        await world.due(group)
        await world.check(group)
        await world.pass_time(group.check_interval_seconds - 1)
        await world.pass_time(-group.check_interval_seconds // 2)
        assert not await is_due(world, group)
        await world.pass_time(group.check_interval_seconds)
        assert (await world.check(group)).asked == 1
    assert len(producer.asked) == 2


async def test_an_open_breaker_admits_its_probe_after_the_step(world: World) -> None:
    async with Producer(status(500)) as producer:
        group = await world.group(producer.url, check_interval_seconds=1)
        await world.due(group, FAILING)
        await world.check(group)
        assert await world.breaker(group) is BreakerState.OPEN
        await world.pass_time(-STEP)
        assert await world.breaker(group) is BreakerState.HALF_OPEN
        await world.check(group)
        await world.pass_time(1)
        producer.answer = says("COMMIT")
        assert (await world.check(group)).decided == 1
        assert await world.breaker(group) is BreakerState.CLOSED


@pytest.mark.parametrize("noted", [False, True])
async def test_a_clock_that_jumps_ahead_parks_no_half_before_it_is_asked_about(
    world: World, noted: bool
) -> None:
    async with Producer(says("COMMIT")) as producer:
        group = await world.group(producer.url)
        assert not await is_old(world, group)
        await world.prepare(group)
        await world.step_clock(group.max_age_seconds + STEP)
        await world.sweep()
        if noted:
            assert not await is_old(world, group)
        assert (await world.check(group)).decided == 1


async def test_a_half_is_parked_when_its_age_is_reached_without_what_the_clock_skipped(
    world: World,
) -> None:
    group = await world.group(NOBODY, paused=True)
    await world.queue.aged_groups()
    await world.due(group)
    await world.step_clock(YEAR)
    assert not await is_old(world, group)
    await world.pass_time(group.max_age_seconds - STEP)
    assert not await is_old(world, group)
    await world.pass_time(STEP)
    assert await is_old(world, group)
    assert (await world.check(group)).parked == 1


async def test_a_half_from_a_time_that_was_far_ahead_is_parked_at_its_age_since_the_step_back(
    world: World,
) -> None:
    group = await world.group(NOBODY, paused=True)
    await world.queue.aged_groups()
    await world.due(group)
    await world.step_clock(-YEAR)
    assert not await is_old(world, group)
    await world.pass_time(group.max_age_seconds - 1)
    assert (await world.check(group)).parked == 0
    await world.pass_time(1)
    assert await is_old(world, group)
    assert (await world.check(group)).parked == 1


async def test_a_clock_that_goes_back_and_forth_makes_no_half_old(world: World) -> None:
    group = await world.group(NOBODY, paused=True)
    await world.queue.aged_groups()
    await world.due(group)
    for step in (YEAR, -YEAR, -YEAR, YEAR, YEAR):
        await world.step_clock(step)
        assert not await is_old(world, group)
    await world.pass_time(group.max_age_seconds)
    assert await is_old(world, group)
