"""Paused and deleted groups, and halves at their max age: no writes, and nothing is forgotten."""

from __future__ import annotations

import os

import pytest

from checker.checks.check_back import CheckRound
from checker.checks.settlement import settlement_of
from outbox.checks.breaker import BreakerState
from outbox.checks.producer_group import ProducerGroup
from outbox.messages.message import State
from tests.integration.checker.fixtures_checks import World
from tests.integration.checker.fixtures_producer import Producer, says, status

pytestmark = pytest.mark.postgres

OWN = "(SELECT id FROM outbox.producer_group WHERE name = 'account')"
PAUSE = "UPDATE outbox.producer_group SET paused = true WHERE name = 'account'"
RESUME = "UPDATE outbox.producer_group SET paused = false WHERE name = 'account'"
DELETE = "UPDATE outbox.producer_group SET deleted_at = clock_timestamp() WHERE name = 'account'"
LATER = "UPDATE outbox.check_breaker SET probe_at = probe_at + make_interval(secs => %(by)s)"
WRITTEN = f"""
SELECT (SELECT count(*) FROM outbox.check_queue WHERE producer_group_id = {OWN}),
    (SELECT max(id) FROM outbox.check_queue WHERE producer_group_id = {OWN}),
    (SELECT sum(position) FROM outbox.check_class WHERE producer_group_id = {OWN})
"""
QUEUED = f"SELECT count(*) FROM outbox.check_queue WHERE producer_group_id = {OWN}"
LEFT_BY_OLDER = f"""
INSERT INTO outbox.check_queue (producer_group_id, delay_seconds, id, half_id, age_from, due_at)
SELECT c.producer_group_id, c.delay_seconds, c.position, h.half_id, h.prepared_at, h.prepared_at
FROM outbox.check_class c CROSS JOIN outbox.half_message h
WHERE c.position > 0 AND h.producer_group_id = c.producer_group_id AND c.producer_group_id = {OWN}
"""
MAX_AGE = 3600
URL = "http://127.0.0.1:1/check"
LARGE, LARGE_BYTES = 40, 900_000


async def rests(world: World, group: ProducerGroup) -> bool | None:
    """Return whether a group with waiting halves is not asked; None if it has none."""
    due = await world.queue.due_groups()
    return next((each.rests for each in due if each.producer_group_id == group.id), None)


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
        assert await rests(world, group) is True
        await world.execute(RESUME)
        assert (await world.check(group)).asked == 20
    assert set(await world.states(halves)) == {State.COMMITTED}
    assert await world.rows(QUEUED) == [(0,)]


async def test_the_queue_holds_one_row_for_each_open_half(world: World) -> None:
    async with Producer(says("UNKNOWN")) as producer:
        group = await world.group(producer.url)
        await world.due(group, 7)
        for _ in range(5):
            await world.check(group)
            assert await world.rows(QUEUED) == [(7,)]
            await world.pass_time(group.check_interval_seconds)
        producer.answer = says("ROLLBACK")
        await world.check(group)
    assert await world.rows(QUEUED) == [(0,)]


@pytest.mark.parametrize("max_age", [MAX_AGE, 2 * MAX_AGE], ids=["max age", "check max"])
async def test_a_round_parks_a_bounded_number_of_bytes_and_the_next_rounds_the_rest(
    world: World, max_age: int
) -> None:
    """It copies them, and until it has committed no relay publishes what was committed later."""
    group = await world.group(URL, max_age_seconds=max_age, check_max=0)
    halves = await world.due(group, LARGE, value=os.urandom(LARGE_BYTES))
    await world.pass_time(MAX_AGE)
    first = await world.check(group)
    assert 0 < first.parked * LARGE_BYTES < 16 << 20
    assert first.more
    while (await world.check(group)).more:
        pass
    assert set(await world.states(halves)) == {State.PARKED}
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
        assert group.id in await world.queue.aged_groups()
        assert (await world.check(group)).parked == 12
    assert len(producer.asked) == asked
    assert set(await world.states(old)) == {State.PARKED}
    assert set(await world.states(young)) == {State.PREPARED}
    assert await world.rows(QUEUED) == [(3,)]
    assert group.id not in await world.queue.aged_groups()


async def test_a_half_at_its_max_age_is_parked_though_its_next_check_is_far(world: World) -> None:
    async with Producer(status(503, Retry_After="7200")) as producer:
        group = await world.group(producer.url, max_age_seconds=MAX_AGE)
        halves = await world.due(group)
        await world.check(group)
        await world.pass_time(MAX_AGE)
        assert (await world.check(group)).parked == 1
    assert await world.states(halves) == [State.PARKED]


async def test_a_group_that_is_deleted_is_not_asked_and_its_halves_are_parked_at_their_max_age(
    world: World,
) -> None:
    async with Producer(says("COMMIT")) as producer:
        group = await world.group(producer.url, max_age_seconds=MAX_AGE)
        halves = await world.due(group, 2)
        await world.execute(DELETE)
        assert await world.check(group) == CheckRound()
        assert await rests(world, group) is True
        await world.pass_time(MAX_AGE)
        assert (await world.check(group)).parked == 2
    assert producer.asked == []
    assert await world.states(halves) == [State.PARKED] * 2


async def test_a_row_that_an_older_checker_has_passed_is_removed_and_never_asked(
    world: World,
) -> None:
    async with Producer(says("UNKNOWN")) as producer:
        group = await world.group(producer.url, max_age_seconds=MAX_AGE)
        (half,) = await world.due(group)
        await world.check(group)
        await world.execute(LEFT_BY_OLDER)
        await world.pass_time(MAX_AGE)
        round_ = await world.check(group)
    assert (round_.dropped, round_.parked, len(producer.asked)) == (1, 1, 1)
    assert await world.states([half]) == [State.PARKED]
    assert await world.rows(QUEUED) == [(0,)]


async def test_a_half_that_is_parked_while_it_is_asked_about_is_not_put_back(world: World) -> None:
    async with Producer(says("UNKNOWN")) as producer:
        group = await world.group(producer.url, max_age_seconds=MAX_AGE)
        (half,) = await world.due(group)
        due = await world.queue.claim(group.id, 10)
        assert due is not None
        results = await world.check_back._caller.ask_all(due, due.rows)
        await world.execute(PAUSE)
        await world.pass_time(MAX_AGE)
        assert (await world.check(group)).parked == 1
        await world.queue.settle(settlement_of(due, results, lambda: 0.0))
    assert await world.states([half]) == [State.PARKED]
    assert await world.rows(QUEUED) == [(0,)]
