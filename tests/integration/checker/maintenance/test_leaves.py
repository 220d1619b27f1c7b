"""Leaves are made in time, under any reader, and rows without a leaf get one."""

from __future__ import annotations

import asyncio
import time

import psycopg
import pytest
from aiohttp import web
from structlog.testing import capture_logs

from checker.maintenance.partition_maintenance import (
    EVERY_SECONDS,
    RETRY_SECONDS,
)
from checker.periodic_task import PeriodicTask, PeriodicTaskLoop
from outbox.messages.message import Ended, HalfMessage, State
from outbox.postgres.maintenance import partitions
from outbox.postgres.maintenance.partitions import PostgresPartitions
from outbox.postgres.messages.message_status import read_statuses
from outbox.postgres.operators.operator_view import OperatorView
from outbox.postgres.reconciliation.source import PostgresSource
from outbox.postgres.sessions.connections import conninfo
from outbox.postgres.sessions.copy_exchange import begin_copy
from tests.fixtures_databases import as_role
from tests.integration.checker.fixtures_checks import World
from tests.integration.checker.fixtures_producer import Check, Producer, says
from tests.integration.checker.maintenance.fixtures_many_rows import (
    WITHOUT_LEAF,
    maintenance,
    sessions_wait,
)
from tests.integration.checker.maintenance.fixtures_old_leaves import NEXT_LEAF, URL
from tests.unit.checker.checks.fixtures_fakes import Beats, ManualClock

pytestmark = pytest.mark.postgres

LIVENESS_SECONDS = 10
READS_ALL = "SELECT count(*) FROM outbox.half_message"
LEAVES = """
SELECT count(*)::int FROM pg_inherits WHERE inhparent = 'outbox.half_message'::regclass
"""
ALONE = """
SELECT (SELECT count(*) FROM outbox.half_message_default WHERE half_id >> 35 >= %(leaf)s)::int,
    (SELECT count(*) FROM outbox.op_message_default WHERE half_id >> 35 >= %(leaf)s)::int,
    (SELECT count(*) FROM outbox.commit_log_default WHERE xid >> 20 >= %(leaf)s)::int
"""
FROZEN_FLUSH = b"""
BEGIN; SELECT outbox.current_xid(); COPY outbox.half_message FROM STDIN (FORMAT BINARY); COMMIT
"""
FORBIDDING = """
CREATE FUNCTION public.forbid() RETURNS event_trigger LANGUAGE plpgsql
AS $$ BEGIN RAISE EXCEPTION 'a ticket is needed'; END $$;
CREATE EVENT TRIGGER forbid ON ddl_command_start WHEN TAG IN ('CREATE TABLE')
EXECUTE FUNCTION public.forbid()
"""
STILL_BELOW = "SELECT %(xid)s >= outbox.watermark()"


def alarm(world: World, table: str = "half_message") -> float:
    return float(world.metrics["default_leaf_rows"].labels(table)._value.get())


async def watermark_passes(world: World, half: HalfMessage) -> bool:
    """Return whether the watermark passes a half before a generous deadline."""
    deadline = time.monotonic() + LIVENESS_SECONDS
    while time.monotonic() < deadline:
        if not (await world.rows(STILL_BELOW, xid=half.half_id >> 15))[0][0]:
            return True
        await asyncio.sleep(0.02)
    return False


async def without_leaf(world: World) -> list[HalfMessage]:
    """Return a committed, a rolled back and an undecided half in the default leaf."""
    group = await world.group(URL)
    await world.execute(WITHOUT_LEAF)
    halves = await world.prepare(group, 3)
    await world.end(halves[0], "COMMIT")
    await world.end(halves[1], "ROLLBACK")
    assert await world.rows(ALONE, leaf=world.first_leaf) == [(3, 2, 1)]
    return halves


async def known(world: World, halves: list[HalfMessage]) -> list[State]:
    async with world.pool.connection() as connection:
        found = await read_statuses(connection, sorted(half.half_id for half in halves))
    return [found[half.half_id].state for half in halves]


async def test_a_leaf_that_falls_due_under_a_long_reader_stops_no_watermark(
    world: World, database_url: str
) -> None:
    group = await world.group(URL)
    leaves = PostgresPartitions(world.checker)
    ((before,),) = await world.rows(LEAVES)
    with psycopg.connect(database_url) as reader:
        reader.execute(READS_ALL)
        creation = asyncio.create_task(leaves.create_ahead(4))
        gave_up, _ = await asyncio.wait([creation], timeout=LIVENESS_SECONDS)
        (half,) = await world.prepare(group)
        moved = await watermark_passes(world, half)
        blocked_still = await maintenance(world).step() if gave_up else None
    assert (moved, len(gave_up), blocked_still) == (True, 1, RETRY_SECONDS)
    assert await creation > 0, "it says that leaves are missing"
    assert await world.rows(LEAVES) == [(before,)]
    assert await maintenance(world).step() == EVERY_SECONDS
    assert (await world.rows(LEAVES))[0][0] > before


async def test_a_prepare_whose_process_is_frozen_stops_the_watermark_for_a_minute_only(
    world: World, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL waits for the rows of a COPY for ever, and no limit for idle sessions ends it."""
    group = await world.group(URL)
    url = conninfo(as_role(database_url, "outbox_api"), "api")
    frozen = await psycopg.AsyncConnection.connect(url, autocommit=True)
    await begin_copy(frozen, FROZEN_FLUSH)
    (half,) = await world.prepare(group)
    await maintenance(world).step()
    assert await world.rows(STILL_BELOW, xid=half.half_id >> 15) == [(True,)]
    monkeypatch.setattr(partitions, "FROZEN_SECONDS", 0.0)
    with psycopg.connect(database_url) as restore, restore.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE restored (id int8)")
        with cursor.copy("COPY restored FROM STDIN") as copy, capture_logs() as lines:
            await maintenance(world).step()
            copy.write_row([1])
    assert await watermark_passes(world, half)
    (line,) = (each for each in lines if each["event"] == "frozen_session_ended")
    assert (line["program"], line["pid"]) == ("outbox-api", frozen.info.backend_pid)
    assert line["host"] == "127.0.0.1"
    await frozen.close()


async def test_rows_without_a_leaf_are_moved_to_one_and_nothing_of_them_changes(
    world: World,
) -> None:
    halves = await without_leaf(world)
    states = await known(world, halves)
    assert await maintenance(world).step() == EVERY_SECONDS
    assert await world.rows(ALONE, leaf=world.first_leaf) == [(0, 0, 0)]
    assert await known(world, halves) == states
    assert await world.end(halves[2], "COMMIT")
    assert alarm(world) == 0
    await world.execute(NEXT_LEAF)
    (next_one,) = await world.prepare(await world.group(URL, "next"))
    assert await known(world, [next_one]) == [State.PREPARED]
    assert await world.rows(ALONE, leaf=world.first_leaf) == [(0, 0, 0)], "partitioning goes on"


async def test_what_waits_while_its_leaf_is_made_is_stored_there(
    world: World, database_url: str
) -> None:
    halves = await without_leaf(world)
    group = await world.group(URL, "waiting")
    with psycopg.connect(database_url) as maker:
        maker.execute("SELECT outbox.create_leaf(outbox.watermark() >> 20)")
        preparing = asyncio.create_task(world.prepare(group))
        ending = asyncio.create_task(world.end(halves[2], "COMMIT"))
        await sessions_wait(world, 2)
        maker.commit()
    (half,), ended = await preparing, await ending
    assert isinstance(ended, Ended), ended
    assert ended.status.state is State.COMMITTED, ended
    assert await known(world, [half, halves[2]]) == [State.PREPARED, State.COMMITTED]
    assert await world.rows(ALONE, leaf=world.first_leaf) == [(0, 0, 0)]


async def test_a_repeated_prepare_that_waits_while_its_leaf_is_made_finds_its_half(
    world: World, database_url: str
) -> None:
    group = await world.group(URL)
    await world.execute(WITHOUT_LEAF)
    (half,) = await world.prepare(group, transaction_id="t")
    with psycopg.connect(database_url) as maker:
        maker.execute("SELECT outbox.create_leaf(outbox.watermark() >> 20)")
        repeating = asyncio.create_task(world.prepare(group, transaction_id="t"))
        await sessions_wait(world, 1)
        maker.commit()
    assert await repeating == [half]


async def test_a_verdict_that_waits_while_the_leaf_of_its_half_is_made_decides_it(
    world: World, database_url: str
) -> None:
    with psycopg.connect(database_url) as maker:

        async def answer(request: web.Request, check: Check) -> web.StreamResponse:
            maker.execute("SELECT outbox.create_leaf(outbox.watermark() >> 20)")
            return await says("COMMIT")(request, check)

        async with Producer(answer) as producer:
            group = await world.group(producer.url)
            await world.execute(WITHOUT_LEAF)
            (half,) = await world.due(group)
            checking = asyncio.create_task(world.check(group))
            await sessions_wait(world, 1)
            maker.commit()
            done = await checking
    assert (done.asked, done.decided) == (1, 1)
    assert await known(world, [half]) == [State.COMMITTED]


async def test_a_half_is_asked_about_though_its_leaf_is_made_while_it_is_looked_up(
    world: World, database_url: str
) -> None:
    async with Producer(says("COMMIT")) as producer:
        group = await world.group(producer.url)
        await world.execute(WITHOUT_LEAF)
        (half,) = await world.due(group)
        with psycopg.connect(database_url) as maker:
            maker.execute("SELECT outbox.create_leaf(outbox.watermark() >> 20)")
            checking = asyncio.create_task(world.check(group))
            await sessions_wait(world, 1)
            maker.commit()
        assert (await checking).decided == 1
    assert await known(world, [half]) == [State.COMMITTED]


async def test_rows_of_a_leaf_that_is_past_are_moved_too(world: World) -> None:
    await without_leaf(world)
    await world.execute(NEXT_LEAF)
    await world.execute(NEXT_LEAF)
    await maintenance(world).step()
    assert await world.rows(ALONE, leaf=world.first_leaf) == [(0, 0, 0)]


async def test_the_alarm_shows_rows_that_cannot_be_moved_yet(
    world: World, database_url: str
) -> None:
    halves = await without_leaf(world)
    with psycopg.connect(database_url) as reader:
        reader.execute(READS_ALL)
        assert await asyncio.wait_for(maintenance(world).step(), 5) == RETRY_SECONDS
        assert (alarm(world), alarm(world, "commit_log")) == (1, 1)
        with OperatorView(database_url) as view:
            assert view.without_leaf() == ["commit_log", "half_message", "op_message"]
    await maintenance(world).step()
    assert alarm(world) == 0
    assert len(await known(world, halves)) == 3


async def test_an_audit_that_has_begun_finds_rows_where_they_were(
    world: World, database_url: str
) -> None:
    halves = await without_leaf(world)
    ids = [half.half_id for half in halves]
    with PostgresSource(database_url).snapshot() as snapshot:
        assert await asyncio.wait_for(maintenance(world).step(), 5) == RETRY_SECONDS
        assert sorted(snapshot.halves(ids)) == sorted(ids)
    assert await maintenance(world).step() == EVERY_SECONDS
    assert await world.rows(ALONE, leaf=world.first_leaf) == [(0, 0, 0)]


async def test_a_strangers_event_trigger_that_refuses_a_leaf_is_one_line_of_the_log(
    world: World, database_url: str
) -> None:
    """The line has the words of the trigger. The task gives no heartbeat, which is its alarm."""
    await world.execute(WITHOUT_LEAF)
    beats = Beats()
    task = PeriodicTask(name="leaves", step=maintenance(world).step)
    loop = PeriodicTaskLoop(task, beats, ManualClock(), world.metrics, beat_seconds=5)
    with psycopg.connect(database_url, autocommit=True) as stranger, capture_logs() as lines:
        stranger.execute(FORBIDDING)
        for _ in range(3):
            await loop.run_once()
        assert beats.beaten == []
        stranger.execute("DROP EVENT TRIGGER forbid")
        await loop.run_once()
    assert beats.beaten == ["leaves"]
    assert [each["event"] for each in lines] == ["dependency_lost", "dependency_back"]
    assert "a ticket is needed" in lines[0]["error"]
