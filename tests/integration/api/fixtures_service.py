"""The service in this process on a real database, and its client."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2

from api.guard import Guard
from api.wiring import build
from outbox.settings.catalogue import Settings
from outbox.settings.environment import load_settings
from tests.contract.fixtures_memory_topics import MemoryTopicCatalogue
from tests.fixtures_databases import as_role
from tests.integration.api.http.authentication.fixtures_contract import DOCUMENT

HALVES = "/v1/half-messages"
GROUPS = "/v1/producer-groups"
CHECK_URL = "http://127.0.0.1:8999/check"
GROUP = "billing"
TOPIC = "invoices.issued"


def settings_for(database_url: str, **overrides: Any) -> Settings:
    """Return the settings of a service on this database, without authentication on loopback.

    The service has its own role, as in a deployment.
    """
    given = {
        "database_url": as_role(database_url, "outbox_api"),
        "kafka_bootstrap_servers": "127.0.0.1:9",
        "auth_mode": "dev-insecure",
        "check_allow_cidrs": "127.0.0.0/8",
    }
    return load_settings({}, {**given, **overrides})


@dataclass(slots=True)
class Service:
    """A client of the service, and the topics in its catalogue."""

    client: httpx2.AsyncClient
    topics: MemoryTopicCatalogue
    app: Guard

    async def put_group(self, name: str = GROUP, **fields: Any) -> httpx2.Response:
        """Register a group."""
        body = {"check_url": CHECK_URL, **fields}
        return await self.client.put(f"{GROUPS}/{name}", json=body)

    async def prepare(self, **fields: Any) -> httpx2.Response:
        """Prepare a half message with the given fields."""
        return await self.client.post(HALVES, json=prepare_body(**fields))

    async def prepared_id(self, **fields: Any) -> str:
        """Prepare a half message and return its id."""
        answer = await self.prepare(**fields)
        assert answer.status_code == 201, answer.text
        message_id: str = answer.json()["message_id"]
        return message_id

    async def end(self, message_id: str, decision: str, **fields: Any) -> httpx2.Response:
        """End a half message."""
        headers = fields.pop("headers", {})
        body = {"decision": decision, **fields}
        return await self.client.post(f"{HALVES}/{message_id}/end", json=body, headers=headers)


def prepare_body(**fields: Any) -> dict[str, Any]:
    """Return a valid prepare; a field given as ``...`` is omitted."""
    body = {"producer_group": GROUP, "topic": TOPIC, "value": "{}", **fields}
    return {name: value for name, value in body.items() if value is not ...}


async def is_in_the_contract(answer: httpx2.Response) -> None:
    """Compare the problem of each answer, whatever the test, with those that its route names."""
    if answer.headers.get("content-type") == "application/problem+json":
        code = json.loads(await answer.aread())["code"]
        for template, operations in DOCUMENT["paths"].items():
            operation = operations.get(answer.request.method.lower())
            path = re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(template))
            if operation and re.fullmatch(path, answer.request.url.path):
                named = operation["responses"]["default"]["description"]
                assert code in re.split("[:,] ", named), f"{operation['operationId']}: {code}"
                return


@asynccontextmanager
async def running(
    settings: Settings,
    topics: MemoryTopicCatalogue | None = None,
    *,
    spans: Any = None,
    **options: Any,
) -> AsyncIterator[Service]:
    """Run the service in this process for the block."""
    catalogue = topics or MemoryTopicCatalogue(counts={TOPIC: 3})
    app = build(settings, catalogue, listens_on="127.0.0.1", spans=spans)
    transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
    async with (
        app.lifespan(),
        httpx2.AsyncClient(
            timeout=30,
            transport=transport,
            base_url="http://localhost",
            event_hooks={"response": [is_in_the_contract]},
            **options,
        ) as client,
    ):
        yield Service(client, catalogue, app)
