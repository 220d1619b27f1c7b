from __future__ import annotations

from collections.abc import AsyncIterator

import psycopg
import pytest

from outbox.postgres.reconciliation.source import PostgresSource
from outbox.postgres.sessions.connections import Pool
from tests.integration.checker.fixtures_checks import World, open_world

OPEN_HALVES = (
    "SELECT count(*) FROM outbox.half_message h"
    " WHERE h.leader_id IS NULL"
    " AND NOT EXISTS (SELECT FROM outbox.op_message o WHERE o.half_id = h.half_id)"
)


@pytest.fixture
async def world(pool: Pool, database_url: str) -> AsyncIterator[World]:
    """Yield the check path on a new database; at its end no cursor has passed an open half."""
    async with open_world(pool) as opened:
        yield opened
    with psycopg.connect(database_url) as connection:
        open_halves = connection.execute(OPEN_HALVES).fetchall()
    with PostgresSource(database_url).snapshot() as snapshot:
        found = snapshot.undecided()
    assert open_halves == [(found.prepared + found.parked,)]
