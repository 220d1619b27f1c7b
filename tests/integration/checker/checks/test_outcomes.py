"""The ends of whole schedules: parking, pausing, rechecks, races, many halves at once."""

from __future__ import annotations

from collections import Counter

import pytest

from outbox.checks.producer_group import OnCheckMax
from outbox.messages.message import Ended, State
from tests.integration.checker.fixtures_checks import World
from tests.integration.checker.fixtures_producer import (
    Answer,
    Producer,
    says,
    status,
)

pytestmark = pytest.mark.postgres

PARKED_FOR = "SELECT parked_reason FROM outbox.parked_message"

NO_SERVER = "http://127.0.0.1:1/check"


async def test_a26_an_end_after_the_verdict_returns_the_valid_decision(world: World) -> None:
    async with Producer(says("COMMIT")) as producer:
        group = await world.group(producer.url)
        (half,) = await world.due(group)
        await world.check(group)
    outcome = await world.end(half, "ROLLBACK")
    assert isinstance(outcome, Ended)
    assert (outcome.conflict, outcome.status.state) == (True, State.COMMITTED)


async def test_d8_an_end_just_before_the_last_round_wins(world: World) -> None:
    async with Producer(says("UNKNOWN")) as producer:
        group = await world.group(producer.url, check_max=1)
        (half,) = await world.due(group)
        await world.check(group)
        await world.pass_time(30)
        await world.end(half, "COMMIT")
        last = await world.check(group)
    assert (last.parked, last.dropped) == (0, 1)
    assert await world.states([half]) == [State.COMMITTED]


@pytest.mark.parametrize("answer", [status(503), None], ids=["503", "nobody"])
async def test_d9_a_group_that_cannot_answer_keeps_every_half_with_nothing_spent(
    world: World, answer: Answer | None
) -> None:
    async with Producer(answer or says("UNKNOWN")) as producer:
        group = await world.group(producer.url if answer else NO_SERVER, check_max=2)
        halves = await world.due(group, 3)
        for _ in range(40):
            await world.check(group)
            await world.pass_time(30)
    assert await world.states(halves) == [State.PREPARED] * 3
    assert {(await world.waiting(half))[1] for half in halves} == {0}
    assert len(await world.attempts(halves[0])) > group.check_max


async def test_a30_an_outage_beyond_the_max_age_parks_all_and_rolls_none_back(world: World) -> None:
    group = await world.group(
        NO_SERVER, on_check_max=OnCheckMax.ROLLBACK, check_max=3, max_age_seconds=2000
    )
    halves = await world.due(group, 12)
    for _ in range(20 * group.check_max):
        await world.check(group)
        await world.pass_time(group.check_interval_seconds)
    assert set(await world.states(halves)) == {State.PREPARED}
    await world.pass_time(group.max_age_seconds)
    probe, rest = await world.check(group), await world.check(group)
    assert (probe.asked, probe.parked, rest.asked, rest.parked) == (1, 1, 0, 11)
    assert set(await world.states(halves)) == {State.PARKED}
    assert await world.rows(PARKED_FOR) == [("max_age",)] * 12


async def test_d10_a_half_that_cannot_be_read_is_named_and_delays_no_other(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    async with Producer(says("COMMIT")) as producer:
        group = await world.group(producer.url)
        broken, sound = await world.prepare(group, 2)
        await world.execute(
            "UPDATE outbox.half_message SET headers = '{odd}' WHERE half_id = %(half)s",
            half=broken.half_id,
        )
        await world.pass_time(6)
        await world.sweep()
        round_ = await world.check(group)
    assert (round_.decided, round_.put_back) == (1, 1)
    assert await world.states([sound]) == [State.COMMITTED]
    assert (await world.waiting(broken))[:2] == (30, 0)
    assert str(broken.message_id) in "".join(capsys.readouterr())
    skipped = {"producer_group": "account", "outcome": "skipped"}
    assert world.metrics.registry.get_sample_value("outbox_checks_total", skipped) == 1


async def test_d11_with_more_halves_than_workers_each_is_asked_once(world: World) -> None:
    async with Producer(says("UNKNOWN")) as producer:
        group = await world.group(producer.url, max_inflight=3)
        await world.due(group, 100)
        while (await world.check(group)).more:
            pass
    asked = Counter((check["message_id"], check["attempt"]) for check in producer.asked)
    assert (len(asked), set(asked.values())) == (100, {1})


async def test_d24_at_the_exact_due_instant_a_half_is_checked_once(world: World) -> None:
    async with Producer(says("UNKNOWN")) as producer:
        group = await world.group(producer.url)
        await world.due(group)
        await world.execute("UPDATE outbox.check_queue SET due_at = clock_timestamp()")
        rounds = [await world.check(group) for _ in range(3)]
    assert [round_.asked for round_ in rounds] == [1, 0, 0]


async def test_410_pauses_the_group_and_nothing_is_spent_or_rolled_back(world: World) -> None:
    async with Producer(status(410)) as producer:
        group = await world.group(producer.url, max_inflight=1)
        halves = await world.due(group, 5)
        await world.check(group)
        paused = await world.rows(
            "SELECT paused, pause_reason FROM outbox.producer_group WHERE name = 'account'"
        )
        await world.pass_time(30)
        again = await world.check(group)
    assert paused == [(True, "endpoint-gone")]
    assert (len(producer.asked), again.asked) == (1, 0)
    assert await world.states(halves) == [State.PREPARED] * 5
    assert (await world.waiting(halves[0]))[1] == 0


async def test_group_settings_take_effect_in_the_next_round(world: World) -> None:
    async with Producer(says("UNKNOWN")) as producer:
        group = await world.group(producer.url)
        (half,) = await world.due(group)
        await world.check(group)
        await world.execute("UPDATE outbox.producer_group SET check_max = 1")
        await world.pass_time(30)
        await world.check(group)
    assert await world.states([half]) == [State.PARKED]
