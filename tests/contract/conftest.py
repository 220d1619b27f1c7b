"""The service on a fresh database, for the tests of a contract."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.contract.service.fixtures_service import ServicePlace


@pytest.fixture
async def place(database_url: str) -> AsyncIterator[ServicePlace]:
    """Yield the service and its checks on a fresh database."""
    opened = ServicePlace(database_url)
    await opened.open()
    yield opened
    await opened.close()
