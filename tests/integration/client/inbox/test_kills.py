"""Relay and consumers are killed again and again: effects = commits, exactly."""

import select
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any

import psycopg
import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from msgspec.structs import replace

from devservers.kafka import EmbeddedKafka
from outbox.messages.message_id import HalfId, parse_message_id
from tests.fixtures_kafka import make_topic
from tests.fixtures_waiting import wait_for
from tests.integration.checker.relay import fixtures_relay_process as relay
from tests.integration.checker.relay.fixtures_relay import SHARD, RelayWorld, open_world
from tests.integration.client.inbox import fixtures_mortal_consumer as consumer
from tests.integration.client.inbox.fixtures_mortals import mortals

pytestmark = [pytest.mark.postgres, pytest.mark.kafka, pytest.mark.deep]

SLICE, PARTITIONS = 300, 3
RELAY = {"program": relay.__name__, "kills": 10, "seconds": 0.3, "batch_max": 20}
CONSUMER = {"program": consumer.__name__, "kills": 330, "seconds": 0.03, "batch_max": 3}
NEW_INSTALLATION = "UPDATE outbox.installation SET installation_id = gen_random_uuid()"
EFFECTS = "SELECT message_id FROM effect"


@pytest.fixture
def world(database_url: str, kafka_broker: EmbeddedKafka) -> Iterator[RelayWorld]:
    """An installation whose topic has a partition for each consumer."""
    servers = kafka_broker.bootstrap_servers
    with open_world(database_url, servers) as made:
        made.connection.execute(NEW_INSTALLATION)
        made.topic = make_topic(servers, partitions=PARTITIONS)
        wait_for(lambda: _group_has_coordinator(servers, TopicPartition(made.topic, 0)))
        yield made


def _group_has_coordinator(servers: str, place: TopicPartition) -> bool:
    """librdkafka asks once where a partition begins; after NOT_COORDINATOR it waits for ever."""
    settings = {"bootstrap.servers": servers, "group.id": consumer.CONSUMER, "log_level": 0}
    with closing(Consumer(settings)) as asking:
        try:
            return bool(asking.committed([place], timeout=5))
        except KafkaException:
            return False


def test_kills_of_relay_and_consumers_leave_one_effect_of_each_commit(
    world: RelayWorld, local_database: str, database: psycopg.Connection[Any]
) -> None:
    facts = {
        "environment": world.checker_environment,
        "progress_topic": world.progress_topic,
        "shard": SHARD,
        "bootstrap_servers": world.bootstrap_servers,
        "topic": world.topic,
        "database_url": local_database,
    }
    asked = [RELAY, *({**CONSUMER, "partition": number} for number in range(PARTITIONS))]
    template, halves = world.message(), list[HalfId]()

    def effects() -> list[HalfId]:
        return [parse_message_id(row[0])[0] for row in database.execute(EFFECTS)]

    with ExitStack() as opened:
        running = [opened.enter_context(mortals(**facts, **each)) for each in asked]
        mortal = {each.stdout for each in running if each.stdout}

        def all_killed() -> bool:
            if len(effects()) >= len(halves):  # a life without a record is never killed
                more = (replace(template, partition=n % PARTITIONS) for n in range(SLICE))
                halves.extend(world.commit(*more))
            for said in select.select(mortal, [], [], 0)[0]:
                assert said.readline() == "immortal\n"
                mortal.remove(said)
            return not mortal

        wait_for(all_killed, seconds=300)
        wait_for(lambda: len(effects()) >= len(halves))
    assert sorted(effects()) == sorted(halves)
    assert database.execute("SELECT last_value > 1 FROM repeated").fetchone() == (True,)
