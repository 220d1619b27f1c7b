"""Copies of the product, one a test file, with or without a server for their tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from devservers.kafka import EmbeddedKafka
from devservers.postgres import EmbeddedPostgres
from tests.fixtures_servers import NEVER_KILLED
from tests.integration.mutants.fixtures_product_copy import ProductCopy


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProductCopy]:
    """Yield a copy whose tests have no server."""
    with closing(ProductCopy(tmp_path_factory.mktemp("product"))) as opened:
        yield opened


@pytest.fixture(scope="module")
def product_on_servers(
    tmp_path_factory: pytest.TempPathFactory, servers_dir: Path
) -> Iterator[ProductCopy]:
    """Yield a copy whose tests share a PostgreSQL and a Kafka that belong to no other test."""
    folder = tmp_path_factory.mktemp("product")
    postgres = EmbeddedPostgres(servers_dir / f"postgres-of-{folder.name}")
    kafka = EmbeddedKafka(servers_dir / f"kafka-of-{folder.name}", settings=NEVER_KILLED)
    with ExitStack() as running:
        for server in (postgres, kafka):
            running.callback(server.erase)
            running.callback(server.stop)
            server.start()
        copy = ProductCopy(folder, postgres.database_url, kafka.bootstrap_servers)
        yield running.enter_context(closing(copy))
