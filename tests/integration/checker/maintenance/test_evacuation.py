"""An unfinished message does not keep its leaf and is found where it is."""

from __future__ import annotations

import pytest

from outbox.messages.message import AlreadyDecided, EndOutcome, HalfMessage, State
from outbox.postgres.reconciliation.source import PostgresSource
from tests.fixtures_messages import make_message
from tests.integration.checker.fixtures_checks import World
from tests.integration.checker.fixtures_producer import Producer, says
from tests.integration.checker.maintenance.fixtures_old_leaves import ended as end_two
from tests.integration.checker.maintenance.fixtures_old_leaves import (
    first_leaf_is_gone,
    grow_old,
    relayed,
    retire,
    retirement_of,
    waiting,
)

pytestmark = pytest.mark.postgres

GIVEN_UP = """
INSERT INTO outbox.held_record (half_id, nonce, shard, topic_id, xid, n, publish_error, dropped_at)
SELECT h.half_id, h.nonce, (h.half_id & 15)::int2, h.topic_id, o.xid, 1, 'refused',
    clock_timestamp()
FROM outbox.half_message h JOIN outbox.op_message o USING (half_id) WHERE h.half_id = %(half)s
"""
EVACUATED = (
    "SELECT half_id FROM outbox.half_message_default WHERE half_id >> 35 = %(leaf)s ORDER BY 1"
)


async def parked(world: World) -> HalfMessage:
    """Return a message that was parked after one check without a verdict."""
    async with Producer(says("UNKNOWN")) as producer:
        group = await world.group(producer.url, "parks", check_max=1)
        (half,) = await world.due(group, transaction_id="order-7", value=b"payload")
        for _ in range(2):
            await world.check(group)
            await world.pass_time(100)
    assert await world.states([half]) == [State.PARKED]
    return half


async def retired(world: World) -> None:
    """Retire the first leaf, whatever is unfinished in it."""
    await grow_old(world, "relay:")
    assert await retire(world) == [0]
    assert await first_leaf_is_gone(world)


async def test_a_parked_message_outlives_its_leaf_and_is_decided_audited_and_published(
    world: World, database_url: str
) -> None:
    await end_two(world)
    half = await parked(world)
    with PostgresSource(database_url).snapshot() as snapshot:
        undecided = snapshot.undecided()
    await retired(world)
    assert await world.states([half]) == [State.PARKED]
    assert await world.attempts(half), "its checks are still shown"
    again = await world.store.prepare([half.message])
    assert again[0].half.half_id == half.half_id, "a repeated prepare finds it"  # type: ignore[union-attr]
    with PostgresSource(database_url).snapshot() as snapshot:
        audited = snapshot.halves([half.half_id])[half.half_id]
        assert (audited.half.message, audited.parked) == (half.message, True)
        assert snapshot.undecided() == undecided
    outcome: EndOutcome = await world.end(half, "COMMIT")
    assert await world.states([half]) == [State.COMMITTED], outcome
    assert relayed(database_url, half.half_id) == b"payload"


async def test_a_given_up_message_outlives_its_leaf(world: World, database_url: str) -> None:
    committed, rolled_back = await end_two(
        world, transaction_id="order-8", followers=(make_message(key=b"another"),)
    )
    await world.execute(GIVEN_UP, half=committed.half_id)
    await retired(world)
    status = await world.status(committed)
    assert (status.state, status.publish_error) == (State.COMMITTED, "refused")
    assert await world.rows(EVACUATED, leaf=world.first_leaf) == [(committed.half_id,)]
    again = await world.store.prepare([committed.message])
    assert again == [AlreadyDecided(status=status)], "its followers have gone with the leaf"
    with PostgresSource(database_url).snapshot() as snapshot:
        ids = [committed.half_id, rolled_back.half_id]
        assert world.first_leaf in snapshot.retired_leaves()
        assert list(snapshot.halves(ids)) == [committed.half_id]
        assert snapshot.held_records(ids)[committed.half_id].dropped


async def test_an_evacuated_message_goes_with_the_leaf_of_its_decision(world: World) -> None:
    half = await parked(world)
    await retired(world)
    await world.end(half, "COMMIT")
    await retire(world)
    assert await world.states([half]) == [State.COMMITTED], "it was decided lately"
    await grow_old(world, "relay:")
    assert await retire(world) == [1]
    assert await world.rows(EVACUATED, leaf=world.first_leaf) == []
    for table in ("op_message", "check_attempt", "parked_message", "transaction_key"):
        rows = f"SELECT half_id FROM outbox.{table} WHERE half_id = %(half)s"
        assert await world.rows(rows, half=half.half_id) == [], table


async def test_a_message_that_is_decided_while_its_leaf_is_removed_is_kept_and_published(
    world: World, database_url: str
) -> None:
    """Its decision comes after the last look at what the leaf waits for."""
    half = await parked(world)
    await grow_old(world, "relay:")
    retirement = retirement_of(world)
    assert await retirement.waits_for(world.first_leaf) is None
    await world.end(half, "COMMIT")
    assert await retirement.remove(world.first_leaf)
    assert await world.states([half]) == [State.COMMITTED]
    assert relayed(database_url, half.half_id) == b"payload"


async def test_more_unfinished_messages_than_one_removal_moves_keep_their_leaf(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outbox.postgres.maintenance.retention.EVACUATED_MOST", 2, raising=False)
    group = await world.group("http://127.0.0.1:9/")
    halves = await world.prepare(group, 3)
    await grow_old(world, "relay:")
    assert await retire(world) == []
    assert waiting(world, "undecided") == 1
    await world.end(halves[0], "ROLLBACK")
    await world.execute("UPDATE outbox.op_message SET decided_at = decided_at - interval '1 day'")
    assert await retire(world) == [0]
    assert await world.states(halves[1:]) == [State.PREPARED] * 2


async def test_a_leaf_is_not_retired_under_an_audit_that_may_still_read_it(
    world: World, database_url: str
) -> None:
    halves = await end_two(world)
    await grow_old(world, "relay:")
    ids = [half.half_id for half in halves]
    with PostgresSource(database_url).snapshot() as snapshot:
        assert await retire(world) == []
        assert waiting(world, "locked") == 1
        assert sorted(snapshot.halves(ids)) == sorted(ids)
    assert await retire(world) == [0]
