"""Fixtures of every suite; servers start when the first test asks for one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from hypothesis import HealthCheck, settings

from cli.embedded.postgres import EmbeddedPostgres
from outbox.storage.connections import Pool, make_pool
from tests.databases import drop_database, make_database, make_template

pytest_plugins = ["tests.embedded_fixtures"]

# Hypothesis measures each example by the wall clock: on a busy machine a pause fails a right one.
settings.register_profile("outbox", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("outbox")


@pytest.fixture(scope="session")
def template_database(postgres_server: EmbeddedPostgres) -> str:
    """Return the name of the migrated template database."""
    return make_template(postgres_server.database_url)


@pytest.fixture
def database_url(postgres_server: EmbeddedPostgres, template_database: str) -> Iterator[str]:
    """Yield the URL of a fresh migrated database."""
    url = make_database(postgres_server.database_url, template_database)
    yield url
    drop_database(postgres_server.database_url, url)


@pytest.fixture
async def pool(database_url: str) -> AsyncIterator[Pool]:
    """Yield an open pool on a fresh migrated database."""
    async with make_pool(database_url, "test", pool_max=10) as opened:
        yield opened
