"""The sweep and the check queue on real tables: watermark, cursors, plans."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from outbox.checks.check_round import Settlement
from outbox.errors import CursorMoved
from outbox.messages.message import ParkedReason, State
from outbox.postgres.checks import check_queue, sweep
from outbox.postgres.sessions.reads import read_in_key_order
from tests.fixtures_messages import make_message, store_topic
from tests.fixtures_waiting import wait_for
from tests.integration.checker.fixtures_checks import World
from tests.integration.checker.fixtures_producer import Producer, says
from tests.integration.postgres.messages.fixtures_plans import nodes

pytestmark = pytest.mark.postgres

NO_SERVER = "http://127.0.0.1:1/check"
QUEUED = "SELECT count(*) FROM outbox.check_queue WHERE producer_group_id = %(group)s"
CLASSES = "SELECT delay_seconds FROM outbox.check_class WHERE producer_group_id = %(group)s"
EARLY = """
SELECT count(*) FROM outbox.check_queue JOIN outbox.half_message h USING (half_id)
WHERE check_queue.producer_group_id = %(group)s
    AND due_at < h.prepared_at + make_interval(secs => h.check_immunity_seconds)
"""
WAITING_FOR_A_LOCK = """
SELECT count(*)::int FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock'
"""


async def test_immunities_that_a_producer_chooses_make_few_delay_classes(world: World) -> None:
    group = await world.group(NO_SERVER)
    topic_id = await store_topic(world.pool, "points-earned")
    chosen = range(1801, 2001)
    messages = [
        make_message(group, topic_id=topic_id, check_immunity_seconds=seconds) for seconds in chosen
    ]
    await world.store.prepare(messages)
    await world.pass_time(1)
    assert await world.sweep() == len(chosen)
    assert await world.rows(QUEUED, group=group.id) == [(len(chosen),)]
    classes = await world.rows(CLASSES, group=group.id)
    assert len(classes) <= 4
    assert await world.rows(EARLY, group=group.id) == [(0,)]


async def test_a_half_of_the_last_second_is_left_for_the_next_sweep(world: World) -> None:
    group = await world.group(NO_SERVER)
    await world.prepare(group)
    assert await world.sweep() == 0
    await world.pass_time(1)
    assert await world.sweep() == 1
    assert await world.rows(QUEUED, group=group.id) == [(1,)]


async def test_the_sweep_does_not_pass_a_half_of_an_open_transaction(world: World) -> None:
    group = await world.group(NO_SERVER)
    async with world.pool.connection() as other, other.transaction():
        await other.execute("SELECT outbox.current_xid()")
        await world.prepare(group)
        await world.pass_time(2)
        held_back = await world.sweep()
    released = await world.sweep()
    assert (held_back, released) == (0, 1)


async def test_a_row_of_an_open_transaction_holds_back_the_rows_after_it(world: World) -> None:
    group = await world.group(NO_SERVER)
    async with world.pool.connection() as other, other.transaction():
        await other.execute("SELECT outbox.current_xid()")
        await world.execute(
            "INSERT INTO outbox.check_class VALUES (%(group)s, 0);"
            "INSERT INTO outbox.check_queue VALUES (%(group)s, 0, outbox.current_xid() << 15, 1, 1,"
            " 0, true, clock_timestamp(), clock_timestamp())",
            group=group.id,
        )
        assert await world.queue.claim(group.id, 10) is None
    assert await world.queue.claim(group.id, 10) is not None


def waiting_for_a_lock(database_url: str) -> int:
    with psycopg.connect(database_url) as connection:
        row = connection.execute(WAITING_FOR_A_LOCK).fetchone()
    return 0 if row is None else int(row[0])


async def test_two_sweeps_that_have_read_the_same_slice_queue_each_half_once(
    world: World, database_url: str
) -> None:
    group = await world.group(NO_SERVER)
    await world.due(group)
    await world.prepare(group, 50)
    await world.pass_time(2)
    async with world.pool.connection() as other, other.transaction():
        await other.execute("SELECT FROM outbox.progress WHERE name = 'sweep' FOR UPDATE")
        sweeps = [asyncio.create_task(world.sweep()) for _ in range(2)]
        await asyncio.to_thread(wait_for, lambda: waiting_for_a_lock(database_url) == 2)
    await asyncio.gather(*sweeps)
    assert await world.rows(QUEUED, group=group.id) == [(51,)]


async def test_a_claim_reads_a_class_in_order_up_to_the_first_row_that_is_not_due(
    world: World,
) -> None:
    group = await world.group(NO_SERVER)
    halves = await world.prepare(group, 3, check_immunity_seconds=100)
    await world.pass_time(2)
    await world.sweep()
    await world.pass_time(98)
    await world.execute(
        "UPDATE outbox.check_queue SET due_at = clock_timestamp() + interval '1 minute'"
        " WHERE half_id = %(half)s",
        half=halves[1].half_id,
    )
    due = await world.queue.claim(group.id, 10)
    assert due is not None
    assert [row.half_id for row in due.rows] == [halves[0].half_id]


async def test_a_slice_has_at_most_the_rows_asked_for_in_due_order(world: World) -> None:
    group = await world.group(NO_SERVER)
    later = await world.due(group, 2)
    sooner = await world.due(group, 2, check_immunity_seconds=1)
    due = await world.queue.claim(group.id, 3)
    assert due is not None
    assert (len(due.rows), due.more) == (3, True)
    assert [row.half_id for row in due.rows][:2] == [half.half_id for half in later]
    assert due.rows[2].half_id == sooner[0].half_id


async def test_a_round_whose_rows_were_read_on_another_server_is_not_written(world: World) -> None:
    """After a failover that lost the last transactions, the same ids are those of other rows."""
    group = await world.group(NO_SERVER)
    (half,) = await world.due(group)
    due = await world.queue.claim(group.id, 10)
    assert due is not None
    started_at = due.server_started_at
    assert started_at is not None
    parkings = tuple((row, ParkedReason.MAX_AGE) for row in due.rows)
    moves = {row.delay_seconds: (due.cursors[row.delay_seconds], row.look_id) for row in due.rows}
    here = Settlement(group=group, moves=moves, parkings=parkings, server_started_at=started_at)
    with pytest.raises(CursorMoved):
        await world.queue.settle(replace(here, server_started_at=started_at - timedelta(seconds=1)))
    again = await world.queue.claim(group.id, 10)
    assert again is not None
    assert [row.half_id for row in again.rows] == [half.half_id]
    await world.queue.settle(here)
    assert await world.states([half]) == [State.PARKED]


async def test_a_settlement_takes_its_xid_after_it_is_complete(world: World) -> None:
    async with Producer(says("COMMIT")) as producer:
        group = await world.group(producer.url)
        (checked,) = await world.due(group)
        (ended,) = await world.prepare(group)

        async def end_first(request: Any, check: Any) -> Any:
            await world.end(ended, "COMMIT")
            return await says("COMMIT")(request, check)

        producer.answer = end_first
        await world.check(group)
    rows = await world.rows("SELECT half_id, xid FROM outbox.op_message")
    xids: dict[int, int] = dict(rows)
    assert xids[ended.half_id] < xids[checked.half_id]


# -- Plans ----------------------------------------------------------------------------------------

LEAF = 1 << 35
FILL = """
SELECT outbox.create_leaf(leaf) FROM generate_series(9002, 9004) AS leaf;
INSERT INTO outbox.half_message (
    half_id, nonce, prepared_at, content_digest, producer_group_id, topic_id, value)
SELECT 9003 * (1::bigint << 35) + n, n, clock_timestamp() - interval '1 hour', 0, 1, 1, 'x'
FROM generate_series(1, 20000) AS n;
INSERT INTO outbox.op_message (half_id, xid, decided_at, decision, decided_by)
SELECT half_id, 1, clock_timestamp(), 1, 1 FROM outbox.half_message WHERE nonce %% 10 <> 0
    AND half_id > 9003 * (1::bigint << 35)
"""


async def explain(world: World, statement: str, **parameters: Any) -> list[dict[str, Any]]:
    """Run a statement on leaves without statistics; return the nodes of its plan."""
    async with world.pool.connection() as connection, connection.transaction():
        await read_in_key_order(connection)
        cursor = await connection.execute(
            f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}".encode(), parameters
        )
        row = await cursor.fetchone()
    assert row is not None
    return list(nodes(row[0]))


def scans(plan: list[dict[str, Any]], table: str) -> list[dict[str, Any]]:
    return [node for node in plan if node.get("Relation Name", "").startswith(f"{table}_")]


def rows_read(node: dict[str, Any]) -> float:
    """Return the rows that a scan read, including those that its filter removed."""
    removed = node.get("Rows Removed by Filter", 0)
    return float((node["Actual Rows"] + removed) * node["Actual Loops"])


async def test_the_sweep_reads_only_its_slice_of_one_leaf(world: World) -> None:
    await world.group(NO_SERVER)
    await world.execute(FILL)
    position = 9003 * LEAF + 10_000
    plan = await explain(
        world,
        sweep.SQL["slice"],
        position=position,
        bound=9003 * LEAF + 20_001,
        limit=4000,
        young="2100-01-01T00:00:00Z",
    )
    (scan,) = scans(plan, "half_message")
    assert scan["Relation Name"] == "half_message_9003"
    assert rows_read(scan) == 4000
    plan = await explain(world, sweep.SQL["undecided"], position=position, last=position + 4000)
    for table in ("half_message", "op_message"):
        (scan,) = scans(plan, table)
        assert scan["Relation Name"] == f"{table}_9003"
        assert scan["Node Type"] in ("Index Scan", "Index Only Scan", "Bitmap Heap Scan")
        assert rows_read(scan) <= 4000


async def test_the_claim_reads_by_key_in_one_leaf(world: World) -> None:
    await world.group(NO_SERVER)
    await world.execute(FILL)
    ids = [9003 * LEAF + n * 10 for n in range(1, 1001)]
    plan = await explain(
        world,
        check_queue.SQL["claimed_halves"],
        look_ids=ids,
        half_ids=ids,
        rounds=[1] * len(ids),
        low=ids[0],
        high=ids[-1],
        with_value=False,
    )
    for table in ("half_message", "op_message"):
        (scan,) = scans(plan, table)
        assert scan["Relation Name"] == f"{table}_9003"
        assert scan["Node Type"].startswith("Index")
        assert rows_read(scan) <= len(ids)


async def test_due_rows_are_read_from_each_cursor_onwards(world: World) -> None:
    await world.execute(
        "INSERT INTO outbox.check_class VALUES (1, 30, 15000);"
        "INSERT INTO outbox.check_queue (producer_group_id, delay_seconds, id, half_id, age_from,"
        " due_at) SELECT 1, 30, n, n, clock_timestamp(), clock_timestamp()"
        " FROM generate_series(1, 20000) AS n"
    )
    await world.group(NO_SERVER)
    queue = check_queue.SQL
    asked = {"now": "2100-01-01T00:00:00Z", "limit": 10, "asks": False, "max_age": 60}
    ((classes,),) = await world.rows("SELECT count(*) FROM outbox.check_class")
    for statement, parameters, most in (
        (queue["due_groups"], {}, classes),
        (queue["due_rows"], {"group": 1, **asked}, 10),
    ):
        plan = await explain(world, statement, **parameters)
        (scan,) = [node for node in plan if node.get("Relation Name") == "check_queue"]
        assert scan["Node Type"] in ("Index Scan", "Index Only Scan")
        assert 1 <= rows_read(scan) <= most
