"""A leaf is removed when all in it has ended and its retention is over (I15, D32)."""

from __future__ import annotations

import pytest

from outbox.failpoints import POINTS, FailpointRaised, arm
from outbox.messages.message import End, HalfMessage, Prepared, Resolution, State
from outbox.postgres.messages.message_status import statuses_now
from tests.integration.checker.fixtures_checks import World
from tests.integration.checker.maintenance.fixtures_old_leaves import (
    OLD,
    RELAYED,
    URL,
    ended,
    first_leaf_is_gone,
    grow_old,
    retire,
    waiting,
)

pytestmark = pytest.mark.postgres

YEAR = 365 * 86_400
KEPT = "SELECT count(*)::int FROM outbox.transaction_key"
HELD = """
INSERT INTO outbox.held_record (half_id, nonce, shard, topic_id, xid, n, publish_error)
SELECT %(half)s, 1, 0, 1, 1, 1, 'refused'
"""


async def known(world: World, halves: list[HalfMessage]) -> dict[int, State]:
    """Return the states of the messages that an API still finds."""
    found = await statuses_now(world.pool, sorted(half.half_id for half in halves))
    return {half_id: status.state for half_id, status in found.items()}


async def test_d32_nothing_undecided_unpublished_or_held_is_removed(world: World) -> None:
    halves = await ended(world)
    (undecided,) = await world.prepare(await world.group(URL, "slow"))
    await grow_old(world)
    assert await retire(world) == []
    assert waiting(world, "relay") == 1
    await world.execute(RELAYED, names=["relay:"])
    await world.execute(HELD, half=halves[0].half_id)
    assert await retire(world) == [0]
    assert await known(world, [*halves, undecided]) == {
        halves[0].half_id: State.COMMITTED,
        undecided.half_id: State.PREPARED,
    }


PUBLISHED_LATELY = """
INSERT INTO outbox.publication_log (shard, to_xid, to_n, batch_no, from_xid, from_n, published_at,
    half_ids, partitions, offsets)
SELECT shard, xid, 1, 1, xid - 1, 0, clock_timestamp(), half_ids, '{0}', '{0}'
FROM outbox.commit_log
"""
IN_THE_MIDDLE = """
UPDATE outbox.progress p SET position = c.xid, position_n = 1
FROM outbox.commit_log c
WHERE p.name = 'relay:' || c.shard AND cardinality(c.half_ids) = 2
"""


async def test_a_leaf_stays_while_the_relay_is_in_the_middle_of_one_of_its_commit_rows(
    world: World,
) -> None:
    halves = await world.prepare(await world.group(URL), 2, key=b"one-shard")
    ends = [End(half_id=h.half_id, nonce=h.nonce, decision=Resolution.COMMIT) for h in halves]
    await world.store.end(ends)
    await grow_old(world, "relay:")
    await world.execute(IN_THE_MIDDLE)
    assert await retire(world) == []
    assert waiting(world, "relay") == 1
    await world.execute("UPDATE outbox.progress SET position_n = 2 WHERE position_n = 1")
    assert await retire(world) == [0]


async def test_a_leaf_stays_for_the_retention_after_its_last_record_was_published(
    world: World,
) -> None:
    await ended(world)
    await grow_old(world, "relay:")
    await world.execute(PUBLISHED_LATELY)
    assert await retire(world) == []
    await world.execute(
        "UPDATE outbox.publication_log SET published_at = published_at - %(by)s * interval '1 s'",
        by=OLD,
    )
    assert await retire(world) == [0]


async def test_a_leaf_stays_until_the_sweep_has_passed_it(world: World) -> None:
    await ended(world)
    await grow_old(world, "relay:")
    await world.execute("UPDATE outbox.progress SET position = 0 WHERE name = 'sweep'")
    assert await retire(world) == []
    assert waiting(world, "sweep") == 1
    await world.sweep()
    assert await retire(world) == [0]


async def test_a_transaction_id_is_free_again_once_its_message_is_retired(world: World) -> None:
    (committed, _) = await ended(world, transaction_id="order-7")
    await grow_old(world, "relay:")
    await retire(world)
    kept = "SELECT FROM outbox.transaction_key WHERE half_id = %(half)s"
    assert await world.rows(kept, half=committed.half_id) == []
    (outcome,) = await world.store.prepare([committed.message])
    assert isinstance(outcome, Prepared)
    assert outcome.half.half_id != committed.half_id


@pytest.mark.parametrize("point", sorted(each for each in POINTS if each.startswith("retire.")))
async def test_a_retirement_that_fails_anywhere_is_finished_by_the_next(
    world: World, point: str
) -> None:
    halves = await ended(world)
    await grow_old(world, "relay:")
    (young,) = await world.prepare(await world.group(URL, "young"))
    arm(f"{point}=raise")
    with pytest.raises(FailpointRaised):
        await retire(world)
    arm(None)
    assert await retire(world) == [0]
    assert await first_leaf_is_gone(world)
    assert await known(world, [*halves, young]) == {young.half_id: State.PREPARED}


async def test_a_clock_that_jumps_ahead_removes_nothing_that_the_audit_has_still_to_read(
    world: World,
) -> None:
    """An installation whose audit has run once: its next run needs what came after that."""
    await ended(world, transaction_id="t-1")
    await grow_old(world, "relay:", by=YEAR)
    await world.execute(RELAYED, names=["reconcile:"])
    await world.execute("UPDATE outbox.progress SET position = 0 WHERE name LIKE 'reconcile:%%'")
    assert await retire(world) == []
    assert waiting(world, "reconcile") == 1
    assert await world.rows(KEPT) == [(1,)]
    await world.execute(RELAYED, names=["reconcile:"])
    assert await retire(world) == [0]
