"""API keys: which there are, which are refused, and how to end one."""

from __future__ import annotations

import shlex
from typing import Any, Final

from starlette.responses import Response

from api.console.visit import Visit
from outbox.clock import SystemClock

KEYS: Final = "/v1/api-keys"


async def show(visit: Visit) -> Response:
    """List the keys that are not revoked, without secrets."""
    refused = (await visit.api.get(KEYS, {"limit": 100, "refused": "true"}))["data"]
    return visit.page(
        "keys.html",
        page=await visit.list(KEYS, "/keys", limit=100),
        now=SystemClock().now(),
        refused=[(key, _successor(key)) for key in refused],
    )


async def revoke(visit: Visit) -> Response:
    """Revoke a key."""
    await visit.api.delete(f"{KEYS}/{visit.at['key_id']}", {"operator": visit.operator})
    return visit.see("/keys", done="revoked")


def _successor(key: dict[str, Any]) -> str:
    """Return the command that makes a key of the same groups and scopes."""
    words = ["outbox", "key", "create", "--name", key["name"]]
    for scope in key["scopes"]:
        words += ["--scope", scope]
    for group in key["producer_groups"]:
        words += ["--group", group]
    return shlex.join(words)
