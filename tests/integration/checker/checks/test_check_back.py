from __future__ import annotations

import pytest
from msgspec import structs

from outbox.checks.producer_group import OnCheckMax
from outbox.messages.message import DecidedBy, Ended, State
from tests.fixtures_messages import make_message
from tests.integration.checker.fixtures_checks import World
from tests.integration.checker.fixtures_producer import Producer, says
from tests.integration.http_checks.fixtures_name_server import answer_names

pytestmark = pytest.mark.postgres


@pytest.mark.parametrize("decision", ["COMMIT", "ROLLBACK"])
async def test_a5_a_late_end_is_accepted_after_unknown_checks(world: World, decision: str) -> None:
    async with Producer(says("UNKNOWN")) as producer:
        group = await world.group(producer.url)
        (half,) = await world.prepare(group, check_immunity_seconds=60)
        await world.pass_time(65)
        await world.sweep()
        await world.check(group)
        outcome = await world.end(half, decision)
        await world.pass_time(30)
        after = await world.check(group)
    assert isinstance(outcome, Ended)
    assert (outcome.already_ended, outcome.conflict) == (False, False)
    assert (len(producer.asked), after.asked, after.dropped) == (1, 0, 1)


async def test_a8_checks_that_stay_unknown_end_in_parking(world: World) -> None:
    async with Producer(says("UNKNOWN")) as producer:
        group = await world.group(producer.url)
        (half,) = await world.due(group, followers=(make_message(key=b"another"),))
        half_ids = await world.rows("SELECT half_id FROM outbox.half_message")
        both = [structs.replace(half, half_id=half_id) for (half_id,) in half_ids]
        for _ in range(15):
            await world.check(group)
            await world.pass_time(30)
        assert await world.states(both) == [State.PREPARED] * 2
        last = await world.check(group)
        assert (last.parked, len(producer.asked)) == (1, 15)
        await world.pass_time(3600)
        assert (await world.check(group)).asked == 0
    assert await world.states(both) == [State.PARKED] * 2
    parked = "SELECT parked_reason, check_count FROM outbox.parked_message"
    assert await world.rows(parked) == [("check_max", 15)]
    asked = [(check["attempt"], check["messages"]) for check in producer.asked]
    assert asked == [(attempt, 2) for attempt in range(1, 16)]


async def test_a8_the_rollback_policy_decides_after_valid_unknowns_alone(world: World) -> None:
    async with Producer(says("UNKNOWN")) as producer:
        group = await world.group(producer.url, on_check_max=OnCheckMax.ROLLBACK, check_max=2)
        (half,) = await world.due(group)
        for _ in range(3):
            await world.check(group)
            await world.pass_time(30)
    status = await world.status(half)
    assert status.op is not None
    assert (status.state, status.op.decided_by) == (State.ROLLED_BACK, DecidedBy.POLICY)
    assert await world.rows("SELECT * FROM outbox.commit_log") == []


async def test_a9_only_the_undecided_half_between_decided_ones_is_asked(world: World) -> None:
    async with Producer(says("UNKNOWN")) as producer:
        group = await world.group(producer.url)
        halves = await world.prepare(group, 5)
        for half in (*halves[:2], *halves[3:]):
            await world.end(half, "COMMIT")
        await world.pass_time(6)
        swept = await world.sweep()
        await world.check(group)
    assert swept == 5
    assert [check["message_id"] for check in producer.asked] == [str(halves[2].message_id)]


async def test_a13_checking_leaves_the_stored_half_as_it_was(world: World) -> None:
    async with Producer(says("UNKNOWN")) as producer:
        group = await world.group(producer.url)
        (half,) = await world.due(group)
        (before,) = await world.rows("SELECT half_id, nonce, value, xmin FROM outbox.half_message")
        for _ in range(5):
            await world.check(group)
            await world.execute("UPDATE outbox.check_queue SET due_at = clock_timestamp()")
    assert len(producer.asked) == 5
    assert await world.rows("SELECT half_id, nonce, value, xmin FROM outbox.half_message") == [
        before
    ]
    assert await world.states([half]) == [State.PREPARED]


@pytest.mark.parametrize("seconds", [1, 7, 100])
async def test_a14_the_first_check_comes_at_the_second_of_the_messages_own_immunity(
    world: World, seconds: int
) -> None:
    async with Producer(says("UNKNOWN")) as producer:
        group = await world.group(producer.url)
        (half,) = await world.prepare(group, check_immunity_seconds=seconds)
        await world.pass_time(1)
        await world.sweep()
        _, count, left = await world.waiting(half)
        assert count == 0
        assert seconds - 3 < left <= seconds - 1
        if seconds > 1:
            await world.pass_time(left - 2)
            assert (await world.check(group)).asked == 0
            left = 2
        await world.pass_time(left)
        assert (await world.check(group)).asked == 1


async def test_a16_calls_to_a_dead_address_of_a_name_do_not_advance_the_attempt(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {"account.test": ["127.0.0.2"]}
    answer_names(monkeypatch, names)
    async with Producer(says("UNKNOWN")) as producer:
        group = await world.group(f"http://account.test:{producer.port}/check")
        (half,) = await world.due(group)
        for _ in range(3):
            await world.check(group)
            await world.pass_time(30)
        assert producer.asked == []
        names["account.test"] = ["127.0.0.1"]
        await world.check(group)
    assert [check["attempt"] for check in producer.asked] == [1]
    assert await world.attempts(half) == [(1, "unreachable", False, False)] * 3 + [
        (1, "unknown", True, False)
    ]


async def test_time_moves_nothing_that_is_parked_or_decided(world: World) -> None:
    """It is neither asked nor parked again at any age: only PREPARED is ever due."""
    async with Producer(says("UNKNOWN")) as producer:
        group = await world.group(producer.url, check_max=1, max_age_seconds=3600)
        parked, committed, rolled_back = await world.due(group, 3)
        await world.end(committed, "COMMIT")
        await world.end(rolled_back, "ROLLBACK")
        for _ in range(4):
            await world.check(group)
            await world.pass_time(3600)
    assert len(producer.asked_about(parked.message_id)) == len(producer.asked) == 1
    expected = [State.PARKED, State.COMMITTED, State.ROLLED_BACK]
    assert await world.states([parked, committed, rolled_back]) == expected
