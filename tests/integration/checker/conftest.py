from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from outbox.storage.connections import Pool
from tests.integration.checker.world import World, open_world


@pytest.fixture
async def world(pool: Pool) -> AsyncIterator[World]:
    """Yield the check path on a fresh database."""
    async with open_world(pool) as opened:
        yield opened
