from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from outbox.storage.connections import Pool
from outbox.storage.reconciliation import PostgresSource
from tests.integration.checker.world import World, open_world


@pytest.fixture
async def world(pool: Pool, database_url: str) -> AsyncIterator[World]:
    """Yield the check path on a fresh database; at its end no cursor has passed an open half."""
    async with open_world(pool) as opened:
        yield opened
    with PostgresSource(database_url).snapshot() as snapshot:
        assert snapshot.undecided(whole=False) == snapshot.undecided()
