"""An admission in SQL mode reads each waiting message once, however many wait."""

from __future__ import annotations

import pytest

from benchmarks.load.committed import register
from outbox.postgres.messages.sql_outbox import PostgresSqlOutbox
from outbox.postgres.sessions.connections import (
    PLAN_EACH_CALL,
    PLAN_ONCE,
    Pool,
    connect,
    make_pool,
)

pytestmark = pytest.mark.postgres

TRANSACTIONS, EACH, BATCH = 4, 500, 100
PUBLISH = """
INSERT INTO outbox.plain_message (half_id, nonce, producer_group_id, topic_id, value)
SELECT (outbox.current_xid() << 15) | (n << 4), n, {}, {}, 'v' FROM generate_series(0, {} - 1) n
"""
READ = """
SELECT pg_stat_force_next_flush(), pg_stat_clear_snapshot(), (
    SELECT coalesce(sum(seq_tup_read), 0) FROM pg_stat_user_tables WHERE relname = 'plain_message'
) + (
    SELECT coalesce(sum(idx_tup_read), 0) FROM pg_stat_user_indexes WHERE relname = 'plain_message'
)
"""


async def reads(pool: Pool) -> int:
    """Return how many rows and index entries of the waiting messages were ever read."""
    async with pool.connection() as connection:
        await connection.execute(READ.encode())
        row = await (await connection.execute(READ.encode())).fetchone()
    assert row is not None
    return int(row[2])


@pytest.mark.parametrize("plans", [PLAN_ONCE, PLAN_EACH_CALL])
async def test_a_batch_does_not_read_what_waits_behind_it(database_url: str, plans: str) -> None:
    with connect(database_url, "test") as session:
        known = register(session, "invoices", "billing")
        session.execute("UPDATE outbox.installation SET plain_outbox = true")
        ids = (known.producer_group_id, known.topic_id)
        async with make_pool(database_url, "test", pool_max=1, plans=plans) as pool:
            outbox = PostgresSqlOutbox(pool, batch_max=BATCH)
            for _ in range(3):
                session.execute(PUBLISH.format(*ids, 1).encode())
                assert await outbox.admit() == 1
            for _ in range(TRANSACTIONS):
                session.execute(PUBLISH.format(*ids, EACH).encode())
            before = await reads(pool)
            assert await outbox.admit() == TRANSACTIONS * EACH
            # Each is found and deleted.
            assert await reads(pool) - before <= 3 * TRANSACTIONS * EACH
