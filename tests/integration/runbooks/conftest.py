"""One aged cluster for all runbooks, and an installation in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from devservers.kafka import EmbeddedKafka
from devservers.postgres import EmbeddedPostgres
from tests.fixtures_databases import migrate
from tests.integration.checker.relay.fixtures_relay import RelayWorld, open_world
from tests.integration.runbooks.fixtures_clusters import (
    DATABASE,
    OLDEST,
    age,
    cluster,
    create_database,
)

LIVED = 20_000
"""Transactions of the old cluster before the installation; a new one has had about 1 000."""


@pytest.fixture(scope="session")
def aged_cluster(servers_dir: Path) -> Iterator[EmbeddedPostgres]:
    """A cluster of the oldest supported version whose transaction ids are far along."""
    if not OLDEST.is_dir():
        pytest.skip(f"no PostgreSQL in {OLDEST}")
    with cluster(servers_dir / "aged") as server:
        age(server, LIVED)
        yield server


@pytest.fixture
def old(aged_cluster: EmbeddedPostgres, kafka_broker: EmbeddedKafka) -> Iterator[RelayWorld]:
    """Yield a new installation in the aged cluster."""
    url = create_database(aged_cluster)
    migrate(url)
    with open_world(url, kafka_broker.bootstrap_servers) as made:
        yield made
    with psycopg.connect(aged_cluster.database_url, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")
