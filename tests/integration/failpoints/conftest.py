"""One environment for the whole folder: its runs use the same stores one after another."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from devservers.kafka import EmbeddedKafka
from devservers.postgres import EmbeddedPostgres
from tests.fixtures_databases import drop_database, make_database
from tests.integration.failpoints.fixtures_environment import CrashEnvironment, open_environment


@pytest.fixture(scope="package")
def environment(
    postgres_server: EmbeddedPostgres,
    template_database: str,
    kafka_broker: EmbeddedKafka,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[CrashEnvironment]:
    """Yield the environment; at the end, its remaining processes are killed."""
    url = make_database(postgres_server.database_url, template_database)
    folder = tmp_path_factory.mktemp("failpoints")
    with open_environment(url, kafka_broker.bootstrap_servers, folder) as opened:
        yield opened
    drop_database(postgres_server.database_url, url)
