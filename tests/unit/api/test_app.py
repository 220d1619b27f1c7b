"""The contract is rendered once; what a path does not take is refused with what it takes."""

from __future__ import annotations

from contextlib import nullcontext
from copy import deepcopy
from typing import Any

import httpx2
import pytest

from api.admin.router import ROUTERS
from api.app import allowed_methods, create_app
from tests.integration.api.http.authentication.fixtures_contract import DOCUMENT


def client_of(document: dict[str, Any]) -> httpx2.AsyncClient:
    """Return a client of an application that serves this document."""
    app = create_app(ROUTERS, lambda _: False, lambda: document, lifespan=lambda _: nullcontext())
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://localhost")


@pytest.mark.parametrize("path", ["/openapi.json", "/docs"])
async def test_a_stranger_costs_no_rendering(path: str) -> None:
    document = deepcopy(DOCUMENT)
    async with client_of(document) as client:
        first = await client.get(path)
        document["info"]["title"] = "changed later"
        assert (await client.get(path)).content == first.content
        assert first.headers["cache-control"] == "no-cache"


def test_a_refusal_names_every_method_of_a_path() -> None:
    routes = [route for router in ROUTERS for route in router.routes]
    found = [
        allowed_methods(routes, {"type": "http", "method": "TRACE", "path": path})
        for path in ("/v1/producer-groups/billing", "/v1/api-keys", "/v1/shards", "/v1/none")
    ]
    assert found == [{"DELETE", "GET", "PUT"}, {"GET", "POST"}, {"GET"}, set()]
