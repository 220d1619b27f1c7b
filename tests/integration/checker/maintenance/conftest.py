"""An installation whose older leaves have gone: only the leaves of a test may go."""

from __future__ import annotations

import pytest

from outbox.postgres.maintenance.retention import PostgresRetirement
from outbox.postgres.sessions.connections import Pool
from tests.integration.checker.fixtures_checks import World


@pytest.fixture
async def world(world: World, pool: Pool) -> World:
    """Remove the leaves that an aged installation has kept, and note the one in use."""
    ((world.first_leaf,),) = await world.rows("SELECT outbox.watermark() >> 20")
    retirement = PostgresRetirement(pool, retention_seconds=0)
    for leaf in await retirement.leaves():
        if leaf < world.first_leaf:
            assert await retirement.waits_for(leaf) is None
            assert await retirement.remove(leaf)
    return world
