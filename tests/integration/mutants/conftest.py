"""Copies of the product, one a test file, with or without a server for their tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from devservers.postgres import EmbeddedPostgres
from tests.integration.mutants.fixtures_product_copy import ProductCopy


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProductCopy]:
    """Yield a copy whose tests have no server."""
    with closing(ProductCopy(tmp_path_factory.mktemp("product"))) as opened:
        yield opened


@pytest.fixture(scope="module")
def product_on_postgres(
    tmp_path_factory: pytest.TempPathFactory, servers_dir: Path
) -> Iterator[ProductCopy]:
    """Yield a copy whose tests share one server, which belongs to no other test."""
    folder = tmp_path_factory.mktemp("product")
    server = EmbeddedPostgres(servers_dir / f"postgres-of-{folder.name}")
    server.start()
    try:
        with closing(ProductCopy(folder, server.database_url)) as opened:
            yield opened
    finally:
        server.stop()
        server.erase()
