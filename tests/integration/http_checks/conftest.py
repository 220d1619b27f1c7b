"""The adapter that sends checks."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from outbox.http_checks.endpoint import HttpCheckEndpoint
from outbox.http_checks.guarded_connector import GuardedResolver
from tests.integration.checker.fixtures_checks import LOOPBACK_ALLOWED


@pytest.fixture
async def endpoint() -> AsyncIterator[HttpCheckEndpoint]:
    """Yield it open; it may reach loopback."""
    async with HttpCheckEndpoint(GuardedResolver(LOOPBACK_ALLOWED)) as opened:
        yield opened
