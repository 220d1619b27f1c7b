"""Relay and consumers are killed again and again: effects = commits, exactly."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest
from msgspec.structs import replace

from devservers.kafka import EmbeddedKafka
from outbox.messages.message_id import parse_message_id
from tests.fixtures_kafka import make_topic
from tests.fixtures_waiting import wait_for
from tests.integration.checker.relay import fixtures_relay_process as relay
from tests.integration.checker.relay.fixtures_relay import SHARD, RelayWorld, open_world
from tests.integration.client.inbox import fixtures_mortal_consumer as consumer
from tests.integration.client.inbox.fixtures_mortals import mortals

pytestmark = [pytest.mark.postgres, pytest.mark.kafka, pytest.mark.deep]

MESSAGES, PARTITIONS = 2000, 3
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
        yield made


def test_kills_of_relay_and_consumers_leave_one_effect_of_each_commit(
    world: RelayWorld, local_database: str, database: psycopg.Connection[Any]
) -> None:
    template = world.message()
    halves = world.commit(*(replace(template, partition=n % PARTITIONS) for n in range(MESSAGES)))
    facts = {
        "environment": world.checker_environment,
        "progress_topic": world.progress_topic,
        "shard": SHARD,
        "bootstrap_servers": world.bootstrap_servers,
        "topic": world.topic,
        "database_url": local_database,
    }
    asked = [RELAY, *({**CONSUMER, "partition": number} for number in range(PARTITIONS))]
    with ExitStack() as opened:
        running = [opened.enter_context(mortals(**facts, **each)) for each in asked]
        assert [next(each.stdout or iter("")) for each in running] == ["immortal\n"] * len(asked)
        wait_for(lambda: len(database.execute(EFFECTS).fetchall()) >= MESSAGES)
    effects = [parse_message_id(row[0])[0] for row in database.execute(EFFECTS)]
    assert sorted(effects) == sorted(halves)
    assert database.execute("SELECT last_value > 1 FROM repeated").fetchone() == (True,)
