"""Bulk actions of an operator: asked for, and waited for."""

from __future__ import annotations

import asyncio
from typing import Any, LiteralString

import httpx2

from tests.integration.api.fixtures_service import Service

BULK = "/v1/bulk-actions"
WHO = {"operator": "ops@example", "reason": "endpoint is back"}
AUDITED: LiteralString = (
    "SELECT action, operator, reason, count(*)::int FROM outbox.audit_log WHERE action ~ %s"
    " GROUP BY 1, 2, 3 ORDER BY 1"
)


async def ask(
    service: Service, action: str, filters: dict[str, Any], **more: Any
) -> httpx2.Response:
    """Request a bulk action."""
    body = {**WHO, "action": action, "filter": filters, **more}
    return await service.client.post(BULK, json=body)


async def finished(service: Service, answer: httpx2.Response) -> dict[str, Any]:
    """Wait for an accepted action; return its result."""
    assert answer.status_code == 202, answer.text

    async with asyncio.timeout(60):
        while True:
            read = await service.client.get(answer.headers["location"])
            found: dict[str, Any] = read.json()
            if found["status"] == "finished":
                return found
            await asyncio.sleep(0.05)
