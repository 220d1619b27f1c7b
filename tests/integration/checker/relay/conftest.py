"""The fixture of a relay test: a new database, new topics, a new installation id."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from devservers.kafka import EmbeddedKafka
from tests.integration.checker.relay.fixtures_relay import RelayWorld, open_world
from tests.integration.checker.relay.fixtures_shop import Shop, open_shop


@pytest.fixture
def world(database_url: str, kafka_broker: EmbeddedKafka) -> Iterator[RelayWorld]:
    """Yield a new world."""
    with open_world(database_url, kafka_broker.bootstrap_servers) as made:
        made.connection.execute(
            "UPDATE outbox.installation SET installation_id = gen_random_uuid()"
        )
        yield made


@pytest.fixture
def shop(world: RelayWorld) -> Iterator[Shop]:
    """Yield a producer with its own role."""
    with open_shop(world) as made:
        yield made
