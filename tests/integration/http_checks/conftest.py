"""The adapter that sends checks."""

from __future__ import annotations

import pytest

from outbox.http_checks.endpoint import HttpCheckEndpoint
from tests.integration.checker.fixtures_checks import LOOPBACK_ALLOWED


@pytest.fixture
def endpoint() -> HttpCheckEndpoint:
    """Return one that may reach loopback."""
    return HttpCheckEndpoint(LOOPBACK_ALLOWED)
