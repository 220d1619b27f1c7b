"""Rows without a leaf get one, and nobody waits while they are read or moved, many as they are."""

from __future__ import annotations

import asyncio
import time

import psycopg
import pytest

from checker.maintenance.partition_maintenance import EVERY_SECONDS, RETRY_SECONDS
from outbox.messages.message import Ended, HalfMessage, State
from outbox.operators.message_view import OperatorAction
from outbox.postgres.maintenance.partitions import PostgresPartitions
from outbox.postgres.operators.installation_admin import rebase_installation
from outbox.postgres.reconciliation.source import PostgresSource
from tests.integration.checker.fixtures_checks import World
from tests.integration.checker.maintenance.fixtures_many_rows import (
    KEPT_IN_ALL,
    LIVENESS_SECONDS,
    MANY,
    PER_XID,
    TABLES,
    at_once,
    do,
    fill,
    finish,
    has_all,
    maintenance,
    next_step,
    soon,
    steps_until,
    touched,
)
from tests.integration.checker.maintenance.fixtures_old_leaves import URL, retirement_of

pytestmark = pytest.mark.postgres

PUBLISH = "CREATE PUBLICATION everything FOR ALL TABLES"
"""Nothing is copied then, and rows move as before."""
KEPT = """
INSERT INTO outbox.retired_leaf (leaf) VALUES (%(leaf)s);
INSERT INTO outbox.half_message
    (half_id, nonce, prepared_at, content_digest, producer_group_id, topic_id)
SELECT (%(leaf)s::int8 << 35) + n, n, now(), n, 1, 1 FROM generate_series(1, 3) AS n;
INSERT INTO outbox.op_message (half_id, xid, decided_at, decision, decided_by)
SELECT (%(leaf)s::int8 << 35) + n,
    CASE WHEN n < 3 THEN %(leaf)s::int8 << 20 ELSE outbox.watermark() END, now(), 2, 1
FROM generate_series(1, 3) AS n
"""
"""Three messages of a leaf that was removed; the leaf of two decisions too, so these two may go."""
KEPT_IDS = """
SELECT half_id - (%(leaf)s::int8 << 35) FROM outbox.half_message_default
WHERE half_id >> 35 = %(leaf)s ORDER BY 1
"""
EXCHANGE = """
WITH gone AS (DELETE FROM outbox.half_message WHERE half_id = %(gone)s RETURNING *)
INSERT INTO outbox.half_message
    (half_id, nonce, prepared_at, content_digest, producer_group_id, topic_id)
SELECT %(new)s, nonce, prepared_at, content_digest, producer_group_id, topic_id FROM gone
"""
FIRST_IDS = """
SELECT half_id FROM outbox.half_message
WHERE half_id >= %(first)s AND half_id < %(end)s ORDER BY half_id
"""
WAITS = """
SELECT count(DISTINCT pid) FROM pg_locks
WHERE NOT granted AND relation = %(table)s::regclass
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


@pytest.mark.parametrize("rows", [MANY, pytest.param(200_000, marks=pytest.mark.deep)])
async def test_no_row_is_read_or_moved_under_a_lock_that_keeps_others_waiting(
    world: World, database_url: str, rows: int
) -> None:
    filled = await fill(world, rows)
    ((kept,),) = await world.rows(KEPT_IN_ALL, first=filled.first)
    moved = touched(database_url, PUBLISH, f"SELECT outbox.create_leaf({filled.leaf})")
    assert moved > rows, "what moves rows under a lock is seen"
    await steps_until(world, "mirror")
    assert touched(database_url, "SELECT outbox.mirror_defaults()") <= len(TABLES)
    await steps_until(world, "replace")
    assert touched(database_url, "SELECT outbox.replace_defaults()") <= kept
    await finish(world)
    assert await has_all(world, filled)


async def test_the_copy_follows_a_session_whose_role_switches_triggers_off(
    world: World, database_url: str
) -> None:
    """One row comes and another one goes, so the numbers of rows are equal without them."""
    filled = await fill(world)
    await steps_until(world, "compare")
    with psycopg.connect(database_url, autocommit=True) as session:
        session.execute("SET session_replication_role = replica")
        session.execute(EXCHANGE, {"gone": filled.first, "new": filled.first + (PER_XID << 4)})
    await finish(world)
    found = await world.rows(FIRST_IDS, first=filled.first, end=filled.first + (1 << 15))
    assert [half_id - filled.first >> 4 for (half_id,) in found] == [*range(1, PER_XID + 1)]


async def test_prepares_and_ends_do_not_wait_while_rows_are_copied(
    world: World, database_url: str
) -> None:
    filled = await fill(world)
    halves: list[HalfMessage] = []
    for step in ("stage", "copy", "compare"):
        await steps_until(world, step)
        with psycopg.connect(database_url) as session:
            assert do(session) == step
            halves += await at_once(world, step)
    assert await passed(world, halves[-1]), "publishing and sweeping go on meanwhile"
    assert await next_step(world) == "replace"
    await finish(world)
    assert await world.states(halves) == [State.COMMITTED, State.PREPARED] * 3
    await world.end(halves[1], "COMMIT")
    assert await world.states(halves[:2]) == [State.COMMITTED] * 2
    assert await has_all(world, filled)


async def test_what_waits_while_a_default_leaf_is_replaced_finds_its_half_and_is_stored_in_a_leaf(
    world: World, database_url: str
) -> None:
    filled = await fill(world)
    group = await world.group(URL)
    (half,) = await world.prepare(group, transaction_id="t")
    await steps_until(world, "replace")
    with psycopg.connect(database_url) as session:
        assert do(session) == "replace"
        waiting = asyncio.gather(
            world.prepare(group),
            world.prepare(group, transaction_id="t"),
            world.end(half, "COMMIT"),
        )
        await locks_are_waited_for(world, "half_message", 3)
        session.commit()
    (new,), repeated, ended = await waiting
    assert isinstance(ended, Ended)
    assert repeated in ([half], []), "none is returned of a message that has ended"
    assert await world.states([half, new]) == [State.COMMITTED, State.PREPARED]
    await finish(world)
    assert await has_all(world, filled)


async def locks_are_waited_for(world: World, table: str, sessions: int) -> None:
    """Wait until so many sessions wait for a table."""
    deadline = time.monotonic() + LIVENESS_SECONDS
    while await world.rows(WAITS, table=f"outbox.{table}") != [(sessions,)]:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


async def passed(world: World, half: HalfMessage) -> bool:
    """Return whether the watermark passes a half before a generous deadline."""
    below = "SELECT %(xid)s < outbox.watermark()"
    deadline = time.monotonic() + LIVENESS_SECONDS
    while await world.rows(below, xid=half.half_id >> 15) != [(True,)]:
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.02)
    return True


@pytest.mark.parametrize(
    ("step", "table"),
    [
        ("mirror", "op_message_default"),
        ("replace", "op_message_default"),
        ("replace", "op_message_next_default"),
    ],
)
async def test_nobody_waits_for_a_step_that_waits_for_a_vacuum(
    world: World, database_url: str, step: str, table: str
) -> None:
    filled = await fill(world)
    await steps_until(world, step)
    with psycopg.connect(database_url) as session, psycopg.connect(database_url) as vacuum:
        vacuum.execute(f"LOCK TABLE outbox.{table} IN SHARE UPDATE EXCLUSIVE MODE".encode())
        waiting = asyncio.create_task(asyncio.to_thread(do, session))
        await locks_are_waited_for(world, table, 1)
        halves = await at_once(world, "vacuumed")
        vacuum.rollback()
        assert await waiting == step
    await finish(world)
    assert await world.states(halves) == [State.COMMITTED, State.PREPARED]
    assert await has_all(world, filled)


async def test_one_transaction_copies_no_more_than_its_time_allows(world: World) -> None:
    await fill(world)
    await steps_until(world, "copy")
    before = await world.rows("SELECT count(*) FROM outbox.half_message_next")
    await world.rows("SELECT outbox.move_defaults(0)")
    ((copied,),) = await world.rows("SELECT count(*) FROM outbox.half_message_next")
    assert before == [(0,)]
    assert copied <= 100


async def test_what_is_kept_of_removed_leaves_stays_in_the_default_leaf_and_can_go_from_it(
    world: World,
) -> None:
    leaf = world.first_leaf - 99
    await world.execute(KEPT, leaf=leaf)
    filled = await fill(world)
    await steps_until(world, "replace")
    assert await world.rows(KEPT_IDS, leaf=leaf) == [(1,), (2,), (3,)]
    await finish(world)
    assert await world.rows(KEPT_IDS, leaf=leaf) == [(1,), (2,), (3,)]
    await retirement_of(world).forget_finished()
    assert await world.rows(KEPT_IDS, leaf=leaf) == [(3,)]
    assert await has_all(world, filled)


async def test_what_is_deleted_while_it_is_copied_does_not_come_back(
    world: World, database_url: str
) -> None:
    leaf = world.first_leaf - 99
    await world.execute(KEPT, leaf=leaf)
    filled = await fill(world)
    await steps_until(world, "copy")
    with psycopg.connect(database_url) as session:
        assert do(session) == "copy"
        forgetting = asyncio.create_task(retirement_of(world).forget_finished())
        await locks_are_waited_for(world, "leaf_move", 1)
        session.commit()
    await forgetting
    await finish(world)
    assert await world.rows(KEPT_IDS, leaf=leaf) == [(3,)]
    assert await has_all(world, filled)


async def test_nobody_waits_while_rows_are_compared(world: World, database_url: str) -> None:
    leaf = world.first_leaf - 99
    await world.execute(KEPT, leaf=leaf)
    filled = await fill(world)
    await steps_until(world, "compare")
    with psycopg.connect(database_url) as session:
        assert do(session) == "compare"
        await soon(retirement_of(world).forget_finished())
    await finish(world)
    assert await world.rows(KEPT_IDS, leaf=leaf) == [(3,)]
    assert await has_all(world, filled)


async def test_a_leaf_is_retired_while_rows_are_copied_and_what_is_kept_of_it_stays(
    world: World,
) -> None:
    (open_half,) = await world.prepare(await world.group(URL))
    filled = await fill(world)
    await steps_until(world, "replace")
    leaf = open_half.half_id >> 35
    await world.execute(
        "SELECT outbox.lock_leaves(), outbox.detach_leaf(%(leaf)s, %(kept)s::int8[])",
        leaf=leaf,
        kept=[open_half.half_id],
    )
    await finish(world)
    assert await world.states([open_half]) == [State.PREPARED]
    assert await has_all(world, filled)


async def test_a_copy_is_brought_to_its_end_also_if_no_leaf_is_missing(world: World) -> None:
    filled = await fill(world)
    await steps_until(world, "end")
    assert await PostgresPartitions(world.checker).create_ahead(0) == 0
    assert await has_all(world, filled)


async def test_many_rows_keep_their_place_while_an_audit_may_read_them(
    world: World, database_url: str
) -> None:
    filled = await fill(world)
    ids = [half.half_id for half in await at_once(world, "audited")]
    with PostgresSource(database_url).snapshot() as snapshot:
        for _ in range(3):
            assert await maintenance(world).step() == RETRY_SECONDS
        assert await next_step(world) == "replace"
        assert sorted(snapshot.halves(ids)) == ids
    await finish(world)
    assert await has_all(world, filled)


async def test_no_copy_is_made_that_a_subscriber_would_have_to_know(world: World) -> None:
    filled = await fill(world)
    await world.execute(PUBLISH)
    assert await next_step(world) == "none"
    assert await maintenance(world).step() == EVERY_SECONDS
    assert await has_all(world, filled)


async def test_few_rows_move_without_a_copy(world: World) -> None:
    filled = await fill(world, rows=1_000)
    assert await next_step(world) == "none"
    assert await maintenance(world).step() == EVERY_SECONDS
    assert await has_all(world, filled)


def test_an_installation_is_rebased_while_its_rows_wait_to_be_copied(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as session:
        session.execute("SELECT outbox.stage_leaf((outbox.watermark() >> 20) + 50)")  # as a crash
        session.execute(
            "INSERT INTO outbox.progress (name, position)"
            " SELECT 'sweep', outbox.watermark() + (100 << 20) << 15"
            " ON CONFLICT (name) DO UPDATE SET position = EXCLUDED.position"
        )
    action = OperatorAction(operator="test", reason="restored", key_id=None)
    rebased = rebase_installation(database_url, action)
    assert rebased.now > rebased.was
