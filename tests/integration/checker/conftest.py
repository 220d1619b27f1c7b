from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from outbox.postgres.reconciliation.source import PostgresSource
from outbox.postgres.sessions.connections import Pool
from tests.integration.checker.fixtures_checks import World, open_world


@pytest.fixture
async def world(pool: Pool, database_url: str) -> AsyncIterator[World]:
    """Yield the check path on a new database; at its end no cursor has passed an open half."""
    async with open_world(pool) as opened:
        yield opened
    with PostgresSource(database_url).snapshot() as snapshot:
        assert snapshot.undecided(whole=False) == snapshot.undecided()
