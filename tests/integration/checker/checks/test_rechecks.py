"""A recheck starts a new round: once, due now, and it voids the waiting row."""

from __future__ import annotations

import pytest

from checker.checks.settlement import settlement_of
from outbox.messages.message import State
from tests.integration.checker.fixtures_checks import World
from tests.integration.checker.fixtures_producer import Producer, says

pytestmark = pytest.mark.postgres

NO_SERVER = "http://127.0.0.1:1/check"


async def test_a17_a_resumed_half_starts_again_and_a_second_resume_changes_nothing(
    world: World,
) -> None:
    async with Producer(says("UNKNOWN")) as producer:
        group = await world.group(producer.url, check_max=1)
        (half,) = await world.due(group)
        await world.check(group)
        await world.pass_time(30)
        await world.check(group)
        assert await world.states([half]) == [State.PARKED]
        await world.recheck(half)
        await world.recheck(half)
        assert await world.states([half]) == [State.PREPARED]
        producer.answer = says("COMMIT")
        round_ = await world.check(group)
    assert (round_.asked, round_.dropped) == (1, 1)
    assert await world.states([half]) == [State.COMMITTED]
    assert [check["attempt"] for check in producer.asked] == [1, 1]
    ids = [headers["webhook-id"] for headers in producer.headers]
    assert ids == [f"chk_{half.message_id}_1_1", f"chk_{half.message_id}_3_1"]


async def test_a31_a_half_parked_for_100_hours_is_checked_at_once_and_not_parked_again_by_age(
    world: World,
) -> None:
    group = await world.group(NO_SERVER)
    (half,) = await world.due(group)
    await world.pass_time(group.max_age_seconds)
    await world.check(group)
    assert await world.states([half]) == [State.PARKED]
    await world.pass_time(100 * 3600)
    async with Producer(says("COMMIT")) as producer:
        await world.execute(
            "UPDATE outbox.producer_group SET check_url = %(url)s", url=producer.url
        )
        await world.recheck(half)
        round_ = await world.check(group)
    assert (round_.asked, round_.parked, len(producer.asked)) == (1, 0, 1)
    assert await world.states([half]) == [State.COMMITTED]
    committed = "SELECT half_ids FROM outbox.commit_log WHERE %(half)s = ANY (half_ids)"
    assert await world.rows(committed, half=half.half_id) == [([half.half_id],)]


async def test_d8_an_end_during_the_last_round_leaves_no_parked_message(world: World) -> None:
    group = await world.group(NO_SERVER, check_max=0)
    (half,) = await world.due(group)
    await world.pass_time(80 * 3600)
    due = await world.queue.claim(group.id, 10)
    assert due is not None
    await world.end(half, "COMMIT")
    results, asked = world.check_back._split(due)
    assert asked == []
    settled = await world.queue.settle(settlement_of(due, results, lambda: 0.0))
    kept = "SELECT FROM outbox.parked_message WHERE half_id = %(half)s"
    assert (settled.parked, await world.rows(kept, half=half.half_id)) == (frozenset(), [])
    assert await world.states([half]) == [State.COMMITTED]
