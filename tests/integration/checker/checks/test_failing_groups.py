"""A group whose checks all fail is visible, however rarely it is asked."""

from __future__ import annotations

import pytest

from outbox.checks.producer_group import ProducerGroup
from outbox.postgres.maintenance.gauges import PostgresGauges
from outbox.postgres.sessions.connections import Pool
from tests.integration.checker.fixtures_checks import World
from tests.integration.checker.fixtures_producer import Producer, says, status

pytestmark = pytest.mark.postgres

NO_SERVER = "http://127.0.0.1:1/check"


async def failing(pool: Pool) -> dict[str, int]:
    """Return for how many minutes the checks of each group have failed."""
    found, _ = await PostgresGauges(pool).read()
    return {each["producer_group"]: int(each["seconds"] // 60) for each in found["failing"]}


async def fail_for_a_quarter_of_an_hour(world: World, url: str) -> ProducerGroup:
    """Let one half of a group be checked twice, fifteen minutes apart, without an answer."""
    group = await world.group(url)
    await world.due(group)
    await world.check(group)
    await world.pass_time(900)
    assert (await world.check(group)).asked == 1
    return group


async def test_one_open_half_that_nobody_answers_for_is_seen(world: World, pool: Pool) -> None:
    await fail_for_a_quarter_of_an_hour(world, NO_SERVER)
    assert await failing(pool) == {"account": 15}


async def test_a_valid_answer_ends_it_and_unknown_is_one(world: World, pool: Pool) -> None:
    async with Producer(status(500)) as producer:
        group = await fail_for_a_quarter_of_an_hour(world, producer.url)
        producer.answer = says("UNKNOWN")
        await world.pass_time(30)
        await world.check(group)
        assert await failing(pool) == {}
