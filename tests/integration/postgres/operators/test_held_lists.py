"""A list of held records costs little, however many wait: a topic that is gone holds millions."""

from __future__ import annotations

import pytest

from outbox.postgres.operators import held_admin
from outbox.postgres.sessions.connections import Pool
from outbox.postgres.sessions.key_order import read_in_key_order
from tests.integration.postgres.messages.fixtures_plans import nodes

pytestmark = pytest.mark.postgres

MANY, SHOWN, COUNTED = 3_000, 20, 10
FILL = """
INSERT INTO outbox.topic (name) VALUES ('held.many') ON CONFLICT DO NOTHING;
INSERT INTO outbox.held_record
    (half_id, nonce, shard, topic_id, key, xid, n, publish_error, topic_wide)
SELECT n, n, 3, t.id, convert_to('k' || n % 100, 'UTF8'), n, 1, 'gone', n % 2 = 0
FROM outbox.topic t, generate_series(1, {}) n WHERE t.name = 'held.many'
"""


async def test_a_list_reads_few_of_the_records_that_wait_behind_each(pool: Pool) -> None:
    nothing = {"half_id": None, "after": None, "topic": None, "groups": None}
    flags = {"refused_only": False, "dropped": False}
    asked = {**nothing, **flags, "limit": SHOWN, "counted": COUNTED}
    explain = f"EXPLAIN (ANALYZE, FORMAT JSON) {held_admin.SQL['list_held']}"
    async with pool.connection() as connection, connection.transaction(force_rollback=True):
        await connection.execute(FILL.format(MANY).encode())
        await connection.execute("ANALYZE outbox.held_record")
        await read_in_key_order(connection)
        row = await (await connection.execute(explain.encode(), asked)).fetchone()
    assert row is not None
    read = sum(
        (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
        for node in nodes(row[0])
    )
    assert SHOWN * COUNTED < read < MANY
