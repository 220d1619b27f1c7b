"""The fixture of a relay test: a new database, new topics, a new installation id."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from devservers.kafka import EmbeddedKafka
from outbox.messages.message_id import SHARDS
from outbox.postgres.sessions.connections import connect
from tests.fixtures_kafka import make_topic
from tests.integration.checker.relay.fixtures_relay import RelayWorld
from tests.integration.checker.relay.fixtures_shop import Shop, open_shop


@pytest.fixture
def world(database_url: str, kafka_broker: EmbeddedKafka) -> Iterator[RelayWorld]:
    """Yield a new world; relays opened through it are closed after the test."""
    servers = kafka_broker.bootstrap_servers
    with connect(database_url, "test") as connection:
        connection.execute("UPDATE outbox.installation SET installation_id = gen_random_uuid()")
        made = RelayWorld(
            database_url,
            servers,
            make_topic(servers, partitions=1),
            make_topic(servers, partitions=SHARDS),
            connection,
        )
        yield made
        for relay in made.opened:
            relay.close()


@pytest.fixture
def shop(world: RelayWorld) -> Iterator[Shop]:
    """Yield a producer with its own role."""
    with open_shop(world) as made:
        yield made
