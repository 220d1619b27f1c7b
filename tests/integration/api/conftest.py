"""The service on a fresh database, with one registered group."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.integration.api import fixtures_service
from tests.integration.api.fixtures_service import Service, running, settings_for
from tests.integration.api.fixtures_ways_in import WAYS_IN


@pytest.fixture(params=["socket", pytest.param("asgi", marks=pytest.mark.deep)])
def way_in(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the test once for each way into the service."""
    monkeypatch.setattr(fixtures_service, "way_in", WAYS_IN[request.param])


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
