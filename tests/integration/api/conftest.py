"""The service on a fresh database, with one registered group."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from api import lifecycle
from api.admin import bulk_runner
from tests.integration.api.fixtures_service import Service, running, settings_for


@pytest.fixture(autouse=True)
def quick_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the tasks beside the requests look, and try again, without a rest of five seconds."""
    monkeypatch.setattr(bulk_runner, "POLL_SECONDS", 0.2)
    monkeypatch.setattr(lifecycle, "PAUSE_SECONDS", 0.2)


@pytest.fixture
async def bare_service(database_url: str) -> AsyncIterator[Service]:
    """Yield the service without any group."""
    async with running(settings_for(database_url)) as service:
        yield service


@pytest.fixture
async def service(bare_service: Service) -> Service:
    """Return the service with the group ``billing``."""
    answer = await bare_service.put_group()
    assert answer.status_code == 201, answer.text
    return bare_service
