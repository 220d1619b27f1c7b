"""With 64 leaves the hot statements are planned once and touch the one leaf that they need."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from psycopg import sql
from psycopg.rows import dict_row

from outbox.messages.message import End, Prepared, Resolution
from outbox.postgres.messages.decisions import END, parameters_of
from outbox.postgres.messages.half_store import PostgresHalfStore
from outbox.postgres.sessions.connections import PLAN_ONCE, AsyncConnection, Pool, make_pool
from tests.fixtures_messages import make_group, make_message, store_group, store_topic
from tests.integration.postgres.messages.fixtures_plans import nodes

pytestmark = pytest.mark.postgres

LEAVES = 64
TABLES = ("half_message", "op_message")
HALVES, ENDED = 2000, 20
PARAMETER = re.compile(r"%\((\w+)\)[sb]")


@pytest.fixture
async def session(database_url: str) -> AsyncIterator[tuple[AsyncConnection, list[End]]]:
    """Yield one session of a pool, and ends of a few halves in one of many leaves."""
    async with make_pool(database_url, "test", pool_max=1, plans=PLAN_ONCE) as pool:
        await store_group(pool, make_group())
        await store_topic(pool, "points-earned")
        await create_leaves(pool)
        store = PostgresHalfStore(pool)
        answers = await store.prepare([make_message() for _ in range(HALVES)])
        ends = [
            End(half_id=each.half.half_id, nonce=each.half.nonce, decision=Resolution.COMMIT)
            for each in answers
            if isinstance(each, Prepared)
        ]
        for end in ends[ENDED : ENDED + 5]:
            await store.end([end])
        async with pool.connection() as connection:
            yield connection, ends[:ENDED]


async def create_leaves(pool: Pool) -> None:
    async with pool.connection() as connection:
        for leaf in range(LEAVES):
            await connection.execute("SELECT outbox.create_leaf(%s)", (leaf,))


async def prepared(connection: AsyncConnection, statement: str) -> Mapping[str, Any]:
    """Return what PostgreSQL knows of a prepared statement, found by its first lines."""
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(
            "SELECT * FROM pg_prepared_statements WHERE starts_with(statement, %s)",
            (statement.partition("%")[0],),
        )
        rows = await cursor.fetchall()
    assert len(rows) == 1
    return rows[0]


async def explain(
    connection: AsyncConnection, name: str, statement: str, parameters: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Run the prepared statement, undo it, and return the nodes of its plan."""
    order = dict.fromkeys(PARAMETER.findall(statement))
    values = sql.SQL(",").join([sql.Literal(parameters[each]) for each in order])
    asked = sql.SQL("EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE {} ({})").format(
        sql.Identifier(name), values
    )
    async with connection.transaction(force_rollback=True):
        row = await (await connection.execute(asked, prepare=False)).fetchone()
    assert row is not None
    return list(nodes(row[0]))


def leaves_read(found: list[dict[str, Any]]) -> dict[str, float]:
    """Return the rows read from each leaf that was read at all."""
    rows: dict[str, float] = {}
    for node in found:
        leaf = node.get("Relation Name", "")
        if leaf.startswith(TABLES) and node["Node Type"] != "ModifyTable" and node["Actual Loops"]:
            assert node["Node Type"] in ("Index Scan", "Index Only Scan")
            rows[leaf] = rows.get(leaf, 0) + node["Actual Rows"] * node["Actual Loops"]
            rows[leaf] += node.get("Rows Removed by Filter", 0)
    return rows


async def test_an_end_is_planned_once_and_reads_by_key_in_one_leaf(
    session: tuple[AsyncConnection, list[End]],
) -> None:
    connection, ends = session
    known = await prepared(connection, END)
    assert (known["custom_plans"], known["generic_plans"] >= 3) == (0, True)
    found = await explain(connection, known["name"], END, parameters_of(ends))
    leaf = ends[0].half_id >> 35
    assert leaves_read(found) == {f"half_message_{leaf}": ENDED, f"op_message_{leaf}": 0}
    removed = [node["Subplans Removed"] for node in found if node.get("Subplans Removed")]
    assert len(removed) == 3
    assert min(removed) >= LEAVES - 1
