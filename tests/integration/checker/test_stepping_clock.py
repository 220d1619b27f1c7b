"""PostgreSQL's own clock jumps ahead and is set back: nothing is parked, removed or lost."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from devservers.kafka import EmbeddedKafka
from outbox.checks.producer_group import ProducerGroup
from outbox.clock import SystemClock
from outbox.messages.message import HalfMessage, State
from outbox.messages.message_id import SHARDS
from outbox.postgres.maintenance.partitions import PostgresPartitions
from outbox.postgres.sessions.connections import connect, make_pool
from tests.fixtures_databases import migrate
from tests.fixtures_false_clock import NoFalseClock, SteppingPostgres
from tests.fixtures_kafka import make_topic
from tests.integration.checker.fixtures_checks import World, open_world
from tests.integration.checker.fixtures_producer import Producer, says
from tests.integration.checker.maintenance.fixtures_old_leaves import NEXT_LEAF, retire
from tests.integration.checker.relay.fixtures_relay import RelayWorld, drain
from tests.integration.runbooks.fixtures_clusters import cluster

pytestmark = [pytest.mark.postgres, pytest.mark.kafka, pytest.mark.deep]

AHEAD = "+4d"
"""More than the max age of a half (72 h) and the retention (1 000 s)."""
STEPS = (AHEAD, "+0", "-1d", "+0")
ASKED_SECONDS = 60.0


@pytest.fixture
def server(servers_dir: Path) -> Iterator[SteppingPostgres]:
    """Yield a server of the test's own."""
    try:
        with cluster(servers_dir / "stepping", binaries=None, kind=SteppingPostgres) as running:
            assert isinstance(running, SteppingPostgres)
            yield running
    except NoFalseClock as missing:
        pytest.skip(str(missing))


@pytest.fixture
def relayed(server: SteppingPostgres, kafka_broker: EmbeddedKafka) -> Iterator[RelayWorld]:
    """Yield a new installation in that server."""
    migrate(server.database_url)
    brokers = kafka_broker.bootstrap_servers
    topics = make_topic(brokers, partitions=1), make_topic(brokers, partitions=SHARDS)
    with connect(server.database_url, "test") as connection:
        made = RelayWorld(server.database_url, brokers, *topics, connection)
        with closing(made.relay()):
            yield made


async def ask_about_all(world: World, group: ProducerGroup, halves: list[HalfMessage]) -> None:
    """Work as the checker does until each half was asked about once more."""
    before = {half.half_id: len(await world.attempts(half)) for half in halves}
    deadline = SystemClock().monotonic() + ASKED_SECONDS
    while any([len(await world.attempts(h)) == before[h.half_id] for h in halves]):
        assert SystemClock().monotonic() < deadline, "a half is not asked about"
        await world.sweep()
        await world.check(group)
        await asyncio.sleep(0.1)


async def test_a_clock_that_jumps_parks_no_half_removes_no_leaf_and_loses_no_message(
    server: SteppingPostgres, relayed: RelayWorld
) -> None:
    (relay,) = relayed.opened
    relayed.commit_values(b"before")
    drain(relay)
    async with (
        make_pool(server.database_url, "test", pool_max=4) as pool,
        open_world(pool) as world,
        Producer(says("UNKNOWN")) as producer,
    ):
        group = await world.group(
            producer.url, "waiting", transaction_timeout_seconds=1, check_interval_seconds=1
        )
        halves = await world.prepare(group, 3)
        await ask_about_all(world, group, halves)
        await world.execute(NEXT_LEAF)
        await PostgresPartitions(world.checker).create_ahead(1)
        assert await retire(world) == []
        for step in STEPS:
            server.step(step)
            relayed.commit_values(step.encode())
            assert await retire(world) == []
            await ask_about_all(world, group, halves)
            assert await world.states(halves) == [State.PREPARED] * len(halves)
            if step == AHEAD:
                relay.run_once()
                assert relayed.values(1) == [b"before"], "Kafka takes no time of so far ahead"
            else:
                drain(relay)
    assert Counter(relayed.values(5)) == Counter([b"before", *map(str.encode, STEPS)])
