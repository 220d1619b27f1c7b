"""A round of checks reads what concerns it, however many halves of a paused group wait."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from benchmarks.load.history import tuples_read
from outbox.checks.check_round import Settlement
from outbox.checks.producer_group import ProducerGroup
from outbox.messages.message import HalfMessage
from outbox.postgres.checks.check_queue import PostgresCheckQueue
from outbox.postgres.sessions.connections import Pool, make_pool
from tests.integration.checker.fixtures_checks import World, open_world

pytestmark = pytest.mark.postgres

NOBODY = "http://127.0.0.1:9/"
WAITING, AGED, LIMIT = 50_000, 10, 5
FILL = """
INSERT INTO outbox.check_class (producer_group_id, delay_seconds) VALUES (%(group)s, 30)
ON CONFLICT DO NOTHING;
INSERT INTO outbox.check_queue (producer_group_id, delay_seconds, id, half_id, age_from, due_at)
SELECT %(group)s, 30, i, i, clock_timestamp(), clock_timestamp()
FROM generate_series(1, %(count)s::int8) AS i
"""
MAX_AGE = 3600
OLD = """
UPDATE outbox.check_queue SET age_from = age_from - make_interval(secs => %(age)s)
WHERE producer_group_id = %(group)s AND delay_seconds <> 30
"""


@pytest.fixture
async def one_connection(database_url: str) -> AsyncIterator[Pool]:
    """Yield a pool of one connection, so that its statistics are complete."""
    async with make_pool(database_url, "test", pool_max=1) as opened:
        yield opened


@pytest.fixture
async def world(one_connection: Pool) -> AsyncIterator[World]:
    """Yield the check path, whose queue uses that connection."""
    async with open_world(one_connection) as opened:
        opened.queue = PostgresCheckQueue(one_connection, lambda secret, _: secret.decode())
        yield opened


async def paused(world: World, halves: int) -> tuple[ProducerGroup, list[HalfMessage]]:
    """Return a paused group with many waiting rows, and halves of it at their max age."""
    group = await world.group(NOBODY, max_age_seconds=MAX_AGE)
    due = await world.due(group, halves) if halves else []
    await world.execute(FILL, group=group.id, count=WAITING)
    await world.execute(OLD, group=group.id, age=MAX_AGE)
    await world.execute("UPDATE outbox.producer_group SET paused = true")
    return replace(group, paused=True), due


async def read_by(world: World, before: int) -> int:
    """Return how many tuples were read since."""
    return await tuples_read(world.pool) - before


@pytest.mark.parametrize("analysed", [True, False], ids=["analysed", "never analysed"])
async def test_a_look_for_aged_halves_reads_one_row_of_a_group(
    world: World, *, analysed: bool
) -> None:
    await paused(world, 0)
    if analysed:
        await world.execute("ANALYZE outbox.check_queue")
    before = await tuples_read(world.pool)
    assert "account" not in (await world.queue.aged_groups()).values()
    assert await read_by(world, before) < WAITING // 100


@pytest.mark.parametrize("analysed", [True, False], ids=["analysed", "never analysed"])
async def test_a_round_of_aged_halves_reads_and_removes_these_alone(
    world: World, *, analysed: bool
) -> None:
    group, halves = await paused(world, AGED)
    if analysed:
        await world.execute("ANALYZE outbox.check_queue")
    assert group.id in await world.queue.aged_groups()
    before = await tuples_read(world.pool)
    due = await world.queue.claim(group.id, LIMIT)
    assert due is not None
    assert len(due.aged) == LIMIT
    assert await read_by(world, before) < WAITING // 100

    before = await tuples_read(world.pool)
    await world.queue.settle(Settlement(group=group, removed=due.aged))
    assert await read_by(world, before) < WAITING // 100
    kept = "SELECT count(*) FROM outbox.check_queue WHERE producer_group_id = %(group)s"
    assert await world.rows(kept, group=group.id) == [(WAITING + len(halves) - LIMIT,)]
