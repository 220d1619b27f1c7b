"""The routes are built once a process, the contract once; a caller who has it gets 304."""

from __future__ import annotations

from contextlib import nullcontext
from copy import deepcopy
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from starlette.routing import Route

from api.admin.router import ROUTERS
from api.app import allowed_methods, create_app
from tests.integration.api.http.authentication.fixtures_contract import DOCUMENT


def app_of(document: dict[str, Any]) -> FastAPI:
    """Return an application that serves this document."""
    return create_app(
        ROUTERS,
        lambda _: False,
        lambda: document,
        lifespan=lambda _: nullcontext(),
    )


def client_of(document: dict[str, Any]) -> httpx2.AsyncClient:
    """Return a client of an application that serves this document."""
    transport = httpx2.ASGITransport(app=app_of(document))
    return httpx2.AsyncClient(transport=transport, base_url="http://localhost")


def test_no_application_builds_a_route_again() -> None:
    """To build all takes 60 ms, which the first caller would wait for."""
    built = [route for router in ROUTERS for route in router.routes]
    served = app_of({}).routes
    assert [route for route in served if route in built] == built
    assert {route.path for route in served if isinstance(route, Route)} >= {"/docs", "/livez"}


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
    found = {
        path: allowed_methods(routes, {"type": "http", "method": "TRACE", "path": path})
        for path in ("/v1/producer-groups/billing", "/v1/api-keys", "/v1/shards", "/v1/none")
    }
    assert list(found.values()) == [{"DELETE", "GET", "PUT"}, {"GET", "POST"}, {"GET"}, set()]
