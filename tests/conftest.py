"""Fixtures of every suite; servers start when the first test asks for one."""

from __future__ import annotations

import gc
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from devservers.postgres import EmbeddedPostgres
from outbox.postgres.sessions.connections import Pool, make_pool
from tests.fixtures_databases import drop_database, make_database, make_template

pytest_plugins = ["tests.fixtures_servers"]

# Hypothesis measures each example by the wall clock: on a busy machine a pause fails a right one.
settings.register_profile("outbox", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("outbox")

DEEP = re.compile(r"\bmark\.deep\b")
"""What a file with deep tests names."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file without deep tests where only these are asked for: most files have none."""
    if config.option.markexpr != "deep" or not collection_path.name.startswith("test_"):
        return None
    return None if DEEP.search(collection_path.read_text("utf-8")) else True


def pytest_collection_finish() -> None:
    """Keep the garbage collector away from what was collected: it lives as long as the process."""
    gc.freeze()


@pytest.fixture(scope="session")
def template_database(postgres_server: EmbeddedPostgres) -> str:
    """Return the name of the template database: migrated."""
    return make_template(postgres_server.database_url)


@pytest.fixture
def database_url(postgres_server: EmbeddedPostgres, template_database: str) -> Iterator[str]:
    """Yield the URL of a fresh migrated database."""
    url = make_database(postgres_server.database_url, template_database)
    yield url
    drop_database(postgres_server.database_url, url)


@pytest.fixture
async def pool(database_url: str) -> AsyncIterator[Pool]:
    """Yield an open pool on a fresh migrated database; sessions open as they are needed."""
    async with make_pool(database_url, "test", pool_max=10, pool_min=1) as opened:
        yield opened
