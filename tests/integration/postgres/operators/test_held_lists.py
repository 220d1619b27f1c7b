"""Lists and releases of held records cost little, however many wait: a topic may hold millions."""

from __future__ import annotations

from typing import Any

import pytest

from outbox.postgres.operators import held_admin
from outbox.postgres.sessions.connections import Pool
from outbox.postgres.sessions.reads import read_in_key_order
from tests.integration.postgres.messages.fixtures_plans import nodes

pytestmark = pytest.mark.postgres

MANY, SHOWN, COUNTED, REFUSED = 3_000, 20, 10, 2
TOPIC = "held.many"
FILL = f"""
INSERT INTO outbox.topic (name) VALUES ('{TOPIC}') ON CONFLICT DO NOTHING;
INSERT INTO outbox.held_record
    (half_id, nonce, shard, topic_id, key, xid, n, publish_error, topic_wide, attempts)
SELECT n, n, 3, t.id, convert_to('k' || n % 100, 'UTF8'), n, 1, 'gone', n % 2 = 0,
    (n % ({MANY} / {REFUSED}) = 0)::integer
FROM outbox.topic t, generate_series(1, {MANY}) n WHERE t.name = '{TOPIC}'
"""


async def read(pool: Pool, *, topic: str | None, refused_only: bool, analyzed: bool) -> int:
    """Return how many rows a list reads, before PostgreSQL has statistics or after."""
    nothing = {"after": None, "groups": None}
    flags = {"topic": topic, "refused_only": refused_only, "dropped": False}
    asked = {**nothing, **flags, "limit": SHOWN, "counted": COUNTED}
    explain = f"EXPLAIN (ANALYZE, FORMAT JSON) {held_admin.SQL['list_held']}"
    async with pool.connection() as connection, connection.transaction(force_rollback=True):
        await connection.execute(FILL.encode())
        if analyzed:
            await connection.execute("ANALYZE outbox.held_record")
        await read_in_key_order(connection)
        row = await (await connection.execute(explain.encode(), asked)).fetchone()
    assert row is not None
    return rows_read(row[0])


def rows_read(plan: Any) -> int:
    """Return how many rows a statement has read, those that it then left out too."""
    return sum(
        (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
        for node in nodes(plan)
    )


@pytest.mark.parametrize("topic", [None, TOPIC])
@pytest.mark.parametrize("analyzed", [False, True])
async def test_a_list_reads_few_of_the_records_that_wait_behind_each(
    pool: Pool, topic: str | None, analyzed: bool
) -> None:
    found = await read(pool, topic=topic, refused_only=False, analyzed=analyzed)
    assert SHOWN * COUNTED < found < MANY
