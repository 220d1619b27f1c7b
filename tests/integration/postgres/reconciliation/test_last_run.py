"""What monitors ask of the newest run does not grow with the partitions and the runs."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from outbox.postgres.reconciliation.finished_runs import PostgresReconciliationRuns
from outbox.postgres.sessions.connections import Pool, make_pool

pytestmark = pytest.mark.postgres

RUNS = 100
PARTITIONS = 500
MOST_BLOCKS = 50
"""A plan of these partitions has about ten blocks, and the others of each run are not read."""
STORE = """
INSERT INTO outbox.reconciliation_run
    (run_id, mode, started_at, cut_at, finished_at, verdict, sentence, complete, plan, counts,
    totals, timings)
SELECT 'r' || n, 'incremental', now(), now(), now() + n * interval '1 second',
    CASE WHEN n > %(inconclusive_after)s THEN 'inconclusive' ELSE 'clean' END, 's', true,
    %(plan)s::jsonb || jsonb_build_object('coverage', n), '{}', '{}', '{}'
FROM generate_series(1, %(runs)s) AS n
"""
READ = """
SELECT coalesce(toast_blks_read, 0) + coalesce(toast_blks_hit, 0) FROM pg_statio_user_tables
WHERE schemaname = 'outbox' AND relname = 'reconciliation_run'
"""


@pytest.fixture
async def pool_of_one(database_url: str) -> AsyncIterator[Pool]:
    """Yield a pool of one connection, so that its statistics are complete."""
    async with make_pool(database_url, "test", pool_max=1) as opened:
        yield opened


async def blocks_read(pool: Pool) -> int:
    """Return how many blocks of plans this session has read."""
    async with pool.connection() as connection:
        await connection.execute("SELECT pg_stat_force_next_flush()")
        await connection.execute("SELECT pg_stat_clear_snapshot()")
        row = await (await connection.execute(READ)).fetchone()
    assert row is not None
    return int(row[0])


async def test_the_newest_run_is_measured_without_the_plans_of_the_others(
    pool_of_one: Pool,
) -> None:
    plan = {
        "partitions": [
            {"topic": f"topic-{n // 10}", "partition": n % 10, "start": n * 7919, "end": n * 1_003}
            for n in range(PARTITIONS)
        ]
    }
    asked = {"plan": json.dumps(plan), "runs": RUNS, "inconclusive_after": RUNS - 3}
    async with pool_of_one.connection() as connection:
        await connection.execute(STORE, asked)
    before = await blocks_read(pool_of_one)
    last = await PostgresReconciliationRuns(pool_of_one).last()
    assert await blocks_read(pool_of_one) - before <= MOST_BLOCKS
    assert last is not None
    assert (last.run_id, last.coverage, last.inconclusive) == (f"r{RUNS}", float(RUNS), 3)
