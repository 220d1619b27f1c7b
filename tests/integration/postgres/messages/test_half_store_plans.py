"""The hot statements read by key in one leaf of many, and are planned once (G9)."""

from __future__ import annotations

import json
import re
from typing import Any, LiteralString

import pytest

from outbox.messages.message import End, Prepared, Resolution
from outbox.postgres.messages.decisions import END, END_RACING, parameters_of
from outbox.postgres.messages.half_store import PostgresHalfStore
from outbox.postgres.messages.message_status import SQL as STATUS
from outbox.postgres.sessions.connections import PLAN_ONCE, Pool, make_pool
from tests.fixtures_messages import make_group, make_message, store_group, store_topic
from tests.integration.postgres.messages.fixtures_plans import nodes

pytestmark = pytest.mark.postgres

LEAVES = ("half_message_", "op_message_", "commit_log_")
MANY_LEAVES = "SELECT outbox.create_leaf(leaf) FROM generate_series(0, 63) AS leaf"
HOW_PLANNED = (
    "SELECT custom_plans, generic_plans FROM pg_prepared_statements"
    " WHERE starts_with(statement, %s)"
)


@pytest.fixture
async def ends(pool: Pool) -> list[End]:
    """Fill one of many leaves with 4 000 halves; return ends for a few, far apart in it."""
    async with pool.connection() as connection:
        await connection.execute(MANY_LEAVES)
    await store_group(pool, make_group())
    await store_topic(pool, "points-earned")
    store = PostgresHalfStore(pool)
    halves = [await store.prepare([make_message()] * 1000) for _ in range(4)]
    picked = [answer for flush in halves for answer in flush[::250]]
    return [
        End(half_id=p.half.half_id, nonce=p.half.nonce, decision=Resolution.COMMIT)
        for p in picked
        if isinstance(p, Prepared)
    ]


async def plan(pool: Pool, statement: LiteralString, parameters: dict[str, object]) -> Any:
    async with pool.connection() as connection:
        explain = "EXPLAIN (FORMAT JSON) " + statement
        cursor = await connection.execute(explain, parameters)
        row = await cursor.fetchone()
    assert row is not None
    return row[0] if isinstance(row[0], list) else json.loads(row[0])


def leaf_reads(tree: Any) -> list[tuple[str, str]]:
    """Return (node type, index condition) of every read of a leaf."""
    return [
        (node["Node Type"], node.get("Index Cond", ""))
        for node in nodes(tree)
        if node.get("Relation Name", "").startswith(LEAVES) and node["Node Type"] != "ModifyTable"
    ]


@pytest.mark.parametrize("statement", [END, END_RACING])
async def test_ends_look_up_each_half_and_op_by_key(
    pool: Pool, ends: list[End], statement: LiteralString
) -> None:
    reads = leaf_reads(await plan(pool, statement, parameters_of(ends)))
    assert len(reads) == 3
    assert all(re.search(r"half_id = \w+\.half_id", condition) for _, condition in reads)
    assert {kind for kind, _ in reads} <= {"Index Scan", "Index Only Scan"}


async def test_statuses_are_looked_up_by_key(pool: Pool, ends: list[End]) -> None:
    half_ids = [end.half_id for end in ends]
    bounds = {"low": min(half_ids), "high": max(half_ids)}
    tree = await plan(pool, STATUS["statuses"], {"half_ids": half_ids, **bounds})
    reads = leaf_reads(tree)
    assert "Seq Scan" not in {kind for kind, _ in reads}
    assert all("half_id = " in condition or "xid = " in condition for _, condition in reads)


async def test_an_end_is_planned_once(database_url: str, ends: list[End]) -> None:
    async with make_pool(database_url, "test", pool_max=1, plans=PLAN_ONCE) as one:
        for end in ends:
            await PostgresHalfStore(one).end([end])
        async with one.connection() as connection:
            cursor = await connection.execute(HOW_PLANNED, [END.partition("%")[0]])
            [(custom, generic)] = await cursor.fetchall()
    assert custom == 0
    assert generic >= 3
