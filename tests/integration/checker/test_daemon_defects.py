"""Defects that users of other systems reported, each tested here (docs/semantics.md)."""

from __future__ import annotations

import pytest

from outbox.messages.message import State
from tests.integration.checker.fixtures_checks import World
from tests.integration.checker.fixtures_producer import Producer, says

pytestmark = pytest.mark.postgres

QUEUED = "SELECT count(*) FROM outbox.check_queue"
COMMITTED = "SELECT half_ids FROM outbox.commit_log"


async def test_d4_parked_committed_resumed_twice_and_committed_again_is_one_commit(
    world: World,
) -> None:
    async with Producer(says("UNKNOWN")) as producer:
        group = await world.group(producer.url, check_max=1)
        (half,) = await world.due(group)
        await world.check(group)
        await world.pass_time(30)
        await world.check(group)
        assert await world.states([half]) == [State.PARKED]
        await world.end(half, "COMMIT")
        for _ in range(2):
            await world.recheck(half)
        producer.answer = says("COMMIT")
        await world.check(group)
        await world.end(half, "COMMIT")
    assert len(producer.asked) == 1
    assert await world.rows(COMMITTED) == [([half.half_id],)]


async def test_d6_waiting_in_immunity_costs_one_row_however_long_it_lasts(world: World) -> None:
    async with Producer(says("UNKNOWN")) as producer:
        group = await world.group(producer.url)
        (half,) = await world.prepare(group, check_immunity_seconds=3600)
        for _ in range(60):
            await world.pass_time(59)
            await world.sweep()
            await world.check(group)
    assert producer.asked == []
    assert await world.rows(QUEUED) == [(1,)]
    _, check_count, due_in = await world.waiting(half)
    assert check_count == 0
    assert due_in == pytest.approx(60, abs=30)
    columns = "SELECT column_name FROM information_schema.columns WHERE table_name = 'check_queue'"
    assert ("value",) not in await world.rows(columns)


async def test_d19_a_check_goes_to_its_own_group_and_names_the_real_topic(world: World) -> None:
    async with Producer(says("COMMIT")) as account, Producer(says("ROLLBACK")) as member:
        groups = [
            await world.group(account.url, "account"),
            await world.group(member.url, "member"),
        ]
        halves = [(await world.due(group))[0] for group in groups]
        for group in groups:
            await world.check(group)
    for producer, half in zip((account, member), halves, strict=True):
        assert [check["message_id"] for check in producer.asked] == [str(half.message_id)]
        assert [check["topic"] for check in producer.asked] == ["points-earned"]
    assert await world.states(halves) == [State.COMMITTED, State.ROLLED_BACK]
