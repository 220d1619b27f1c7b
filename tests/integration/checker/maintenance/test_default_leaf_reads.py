"""What looks at the default leaves each minute reads little, whatever they have."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from benchmarks.load.history import tuples_read
from outbox.postgres.maintenance.partitions import PostgresPartitions
from outbox.postgres.maintenance.retention import PostgresRetirement
from outbox.postgres.sessions.connections import Pool, make_pool
from tests.integration.checker.fixtures_checks import World
from tests.integration.checker.maintenance.fixtures_many_rows import TABLES
from tests.integration.checker.maintenance.fixtures_old_leaves import HOLD, RETENTION

pytestmark = pytest.mark.postgres

ROWS = 20_000
MANY_ROWS = 200_000
"""As after hours without a checker, or as a year of unfinished messages."""
MOST_TUPLES = 400
"""One row for each table and shard, and the numbers of the leaves."""
MOST_OF_A_STEP = 10_000
"""A thousand halves, each with its decision, its hold and the leaves that are gone."""
AHEAD = 50
"""No leaf exists so far ahead."""
WITHOUT_LEAF = """
INSERT INTO outbox.commit_log (shard, xid, committed_at, half_ids, content_digests)
SELECT n %% 16, ((%(leaf)s::int8 + n %% 2) << 20) + n, now(), ARRAY[n << 15], ARRAY[n]
FROM generate_series(1, %(rows)s::int8) AS n;
INSERT INTO outbox.publication_log (shard, to_xid, to_n, batch_no, from_xid, from_n, published_at,
    half_ids, partitions, offsets)
SELECT n %% 16, ((%(leaf)s::int8 + n %% 2) << 20) + n, 1, n, 1, 1, now(),
    ARRAY[n << 15], ARRAY[0], ARRAY[n]
FROM generate_series(1, %(rows)s::int8) AS n;
"""
KEPT = """
INSERT INTO outbox.retired_leaf (leaf) SELECT %(leaf)s::int8 + n FROM generate_series(0, 9) AS n;
INSERT INTO outbox.half_message
    (half_id, nonce, prepared_at, content_digest, producer_group_id, topic_id)
SELECT ((%(leaf)s::int8 + n %% 10) << 35) + n, n, now(), n, 1, 1
FROM generate_series(1, %(rows)s::int8) AS n;
INSERT INTO outbox.op_message (half_id, xid, decided_at, decision, decided_by)
SELECT ((%(leaf)s::int8 + n %% 10) << 35) + n, (%(leaf)s::int8 + 99) << 20, now(), 2, 1
FROM generate_series(1, %(rows)s::int8) AS n;
INSERT INTO outbox.check_attempt
    (half_id, look_id, round, attempt, asked_at, outcome, latency_ms, counted, applied)
SELECT ((%(leaf)s::int8 + n %% 10) << 35) + n, 1, 1, 1, now(), 'unknown', 5, true, false
FROM generate_series(1, %(rows)s::int8) AS n;
"""
"""Messages of removed leaves. Their decisions are younger, so that none of them may go."""
DECISIONS_GO = """
INSERT INTO outbox.retired_leaf (leaf) VALUES (%(leaf)s::int8 + 99)
"""
OLDEST_STAY = "DELETE FROM outbox.op_message WHERE half_id >> 35 = %(leaf)s"
"""They are undecided."""
ANALYZE = ";".join(f"ANALYZE outbox.{table}_default" for table in TABLES)
"""As autovacuum does within a minute."""
LEFT = "SELECT count(*)::int FROM outbox.{table}_default WHERE half_id >> 35 = %(leaf)s"


@pytest.fixture
async def pool_of_one(world: World) -> AsyncIterator[Pool]:
    """Yield a pool of one connection, so that its statistics are complete."""
    async with make_pool(str(world.pool.conninfo), "test", pool_max=1) as opened:
        yield opened


@pytest.mark.parametrize("rows", [ROWS, pytest.param(MANY_ROWS, marks=pytest.mark.deep)])
@pytest.mark.parametrize("analyzed", [False, True], ids=["new", "analyzed"])
async def test_a_look_for_missing_leaves_reads_no_more_of_many_rows_that_have_none(
    world: World, pool_of_one: Pool, rows: int, *, analyzed: bool
) -> None:
    leaf = world.first_leaf + AHEAD
    await world.execute(WITHOUT_LEAF, leaf=leaf, rows=rows)
    await looks_are_small(world, pool_of_one, analyzed=analyzed)
    found = await PostgresPartitions(pool_of_one).default_rows()
    assert {table for table, has in found.items() if has} == {"commit_log", "publication_log"}
    missing = f"SELECT DISTINCT leaf FROM outbox.rows_without_leaf({leaf + 1})"
    assert await world.rows(f"{missing} WHERE leaf IS NOT NULL") == [(leaf + 1,)]


@pytest.mark.parametrize("rows", [ROWS, pytest.param(MANY_ROWS, marks=pytest.mark.deep)])
@pytest.mark.parametrize("analyzed", [False, True], ids=["new", "analyzed"])
async def test_a_look_for_missing_leaves_reads_nothing_that_is_kept_of_removed_ones(
    world: World, pool_of_one: Pool, rows: int, *, analyzed: bool
) -> None:
    await world.execute(KEPT, leaf=world.first_leaf + AHEAD, rows=rows)
    await looks_are_small(world, pool_of_one, analyzed=analyzed)
    found = await PostgresPartitions(pool_of_one).default_rows()
    assert found == dict.fromkeys(TABLES, False)


async def looks_are_small(world: World, pool: Pool, *, analyzed: bool) -> None:
    """Assert that one look reads little, with and without what the planner knows."""
    if analyzed:
        await world.execute(ANALYZE)
    before = await tuples_read(pool)
    await PostgresPartitions(pool).default_rows()
    assert await tuples_read(pool) - before <= MOST_TUPLES


@pytest.mark.parametrize("rows", [ROWS, pytest.param(MANY_ROWS, marks=pytest.mark.deep)])
async def test_a_look_for_kept_messages_that_may_go_reads_a_part_of_them(
    world: World, pool_of_one: Pool, rows: int
) -> None:
    leaf = world.first_leaf + AHEAD
    await world.execute(KEPT, leaf=leaf, rows=rows)
    await world.execute(ANALYZE)
    retirement = PostgresRetirement(pool_of_one, retention_seconds=RETENTION, hold_seconds=HOLD)
    for _ in range(2):
        before = await tuples_read(pool_of_one)
        await retirement.forget_finished()
        assert await tuples_read(pool_of_one) - before <= MOST_OF_A_STEP


async def test_every_kept_message_that_may_go_goes_some_time(
    world: World, pool_of_one: Pool
) -> None:
    leaf = world.first_leaf + AHEAD
    await world.execute(KEPT, leaf=leaf, rows=ROWS)
    await world.execute(OLDEST_STAY, leaf=leaf)
    retirement = PostgresRetirement(pool_of_one, retention_seconds=RETENTION, hold_seconds=HOLD)
    for _ in range(3):
        await retirement.forget_finished()
    await world.execute(DECISIONS_GO, leaf=leaf)
    for _ in range(2 * ROWS // 1_000):
        await retirement.forget_finished()
    for table in ("half_message", "check_attempt"):
        left = LEFT.format(table=table)
        found = [await world.rows(left, leaf=each) for each in range(leaf, leaf + 10)]
        assert found == [[(ROWS // 10,)], *[[(0,)]] * 9]
    assert await world.rows(LEFT.format(table="op_message"), leaf=leaf + 9) == [(0,)]
