"""A signing secret that no key opens stops the checks of its group, and nothing else."""

from __future__ import annotations

import base64
import os

import pytest

from outbox.checks.producer_group import ProducerGroup
from outbox.errors import ConfigurationError
from outbox.messages.message import State
from outbox.postgres.checks.check_queue import PostgresCheckQueue
from outbox.postgres.checks.keyring import KeyRing, key_ring, new_secret
from outbox.postgres.checks.producer_groups import PostgresProducerGroups
from tests.integration.checker.fixtures_checks import World
from tests.integration.checker.fixtures_producer import Producer, says

pytestmark = pytest.mark.postgres

NAME = "account"
MAX_AGE = 3600
SECRET = "UPDATE outbox.producer_group SET secret = %(secret)s"


def ring() -> KeyRing:
    """Return a ring with one new key."""
    return key_ring(base64.b64encode(os.urandom(32)).decode())


async def with_lost_key(world: World, url: str) -> tuple[ProducerGroup, KeyRing]:
    """Return a group whose secret was sealed with a key that the checker's ring does not have."""
    group = await world.group(url, NAME, max_age_seconds=MAX_AGE)
    await world.execute(SECRET, secret=ring().seal(new_secret(), NAME))
    present = ring()
    world.queue = PostgresCheckQueue(world.checker, present.open)
    world.check_back._queue = world.queue
    return group, present


async def test_a_half_waits_past_its_max_age_while_the_secret_cannot_be_read(world: World) -> None:
    async with Producer(says("COMMIT")) as producer:
        group, _ = await with_lost_key(world, producer.url)
        halves = await world.due(group)
        await world.pass_time(MAX_AGE)
        with pytest.raises(ConfigurationError):
            await world.check(group)
    assert producer.asked == []
    assert await world.states(halves) == [State.PREPARED]


async def test_a_new_secret_ends_it_at_once_though_the_previous_one_stays_valid(
    world: World,
) -> None:
    async with Producer(says("COMMIT")) as producer:
        group, present = await with_lost_key(world, producer.url)
        halves = await world.due(group)
        await PostgresProducerGroups(world.pool, present).rotate_secret(NAME, 3600, None)
        assert (await world.check(group)).decided == 1
    assert await world.states(halves) == [State.COMMITTED]
