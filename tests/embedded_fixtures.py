"""One PostgreSQL server and one Kafka broker for a whole test session.

Durability settings are the servers' own: what the tests prove must hold as it runs in earnest.
"""

from collections.abc import Iterator

import pytest

from cli.embedded.kafka import EmbeddedKafka
from cli.embedded.postgres import EmbeddedPostgres


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedPostgres]:
    """A running PostgreSQL on a free port; `database_url` is its maintenance database."""
    server = EmbeddedPostgres(tmp_path_factory.mktemp("servers") / "postgres")
    server.start()
    try:
        yield server
    finally:
        server.stop()
        server.erase()


@pytest.fixture(scope="session")
def kafka_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    """A running Kafka broker on free ports; `bootstrap_servers` is its address."""
    broker = EmbeddedKafka(tmp_path_factory.mktemp("servers") / "kafka")
    broker.start()
    try:
        yield broker
    finally:
        broker.stop()
        broker.erase()
