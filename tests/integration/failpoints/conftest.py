"""One ground for the whole folder: its runs follow one another on the same stores."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from devservers.kafka import EmbeddedKafka
from devservers.postgres import EmbeddedPostgres
from tests.fixtures_databases import drop_database, make_database
from tests.integration.failpoints.fixtures_ground import Ground, open_ground


@pytest.fixture(scope="session")
def ground(
    postgres_server: EmbeddedPostgres,
    template_database: str,
    kafka_broker: EmbeddedKafka,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Ground]:
    """Yield the ground; whatever is left of its processes is killed at the end."""
    url = make_database(postgres_server.database_url, template_database)
    folder = tmp_path_factory.mktemp("failpoints")
    with open_ground(url, kafka_broker.bootstrap_servers, folder) as opened:
        yield opened
    drop_database(postgres_server.database_url, url)
