"""A failing endpoint is asked rarely; nothing is spent and nothing is decided."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from outbox.checks.breaker import BreakerState
from outbox.checks.producer_group import ProducerGroup
from outbox.messages.message import State
from outbox.postgres.checks.keyring import key_ring
from outbox.postgres.checks.producer_groups import PostgresProducerGroups
from outbox.postgres.maintenance.gauges import PostgresGauges
from outbox.postgres.sessions.connections import Pool
from tests.integration.checker.fixtures_checks import World, open_world
from tests.integration.checker.fixtures_producer import Check, Producer, says, status

pytestmark = pytest.mark.postgres

FAILING = 12


async def test_an_outage_of_a_quarter_of_an_hour_spends_little_and_parks_nothing(
    world: World,
) -> None:
    async with Producer(status(503)) as producer:
        group = await world.group(producer.url, check_max=3)
        halves = await world.due(group, FAILING)
        for _ in range(30):
            await world.check(group)
            await world.pass_time(30)
        while_away = len(producer.asked)
        producer.answer = says("COMMIT")
        await world.pass_time(300)
        while (await world.check(group)).more:
            pass
    assert set(await world.states(halves)) == {State.COMMITTED}
    assert while_away <= FAILING + 6


@asynccontextmanager
async def opened_by_one_of_two(
    pool: Pool,
) -> AsyncIterator[tuple[Producer, ProducerGroup, World, World]]:
    """Yield a failing endpoint, its group, the checker that has opened its breaker, and another."""
    async with (
        Producer(status(500)) as producer,
        open_world(pool) as one,
        open_world(pool) as other,
    ):
        group = await one.group(producer.url)
        await one.due(group, FAILING)
        await one.check(group)
        yield producer, group, one, other


async def test_every_checker_waits_after_one_has_opened_it(pool: Pool) -> None:
    async with opened_by_one_of_two(pool) as (producer, group, one, other):
        await one.due(group, FAILING)
        assert (await other.check(group)).asked == 0
        await one.pass_time(30)
        producer.answer = says("UNKNOWN")
        await other.check(group)
        assert (await one.check(group)).asked > 0


async def test_answers_to_calls_of_before_a_resume_do_not_open_it(world: World) -> None:
    groups = PostgresProducerGroups(world.pool, key_ring(None, insecure=True))

    async def fails_late(_: web.Request, __: Check) -> web.StreamResponse:
        await groups.pause(group.name, "repaired", paused=False, key_id=None)
        return web.Response(status=500)

    async with Producer(fails_late) as producer:
        group = await world.group(producer.url)
        await world.due(group, FAILING)
        assert (await world.check(group)).asked == FAILING
        await world.due(group)
        assert await world.breaker(group) is BreakerState.CLOSED
        found, _ = await PostgresGauges(world.pool).read()
        assert found["failing"] == []
    gauge = world.metrics["check_breaker_state"].labels(group.name)
    assert gauge._value.get() == 0
