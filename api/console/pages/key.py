"""API keys: which there are, and how to end one."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from api.console.visit import Visit

KEYS: Final = "/v1/api-keys"


async def show(visit: Visit) -> Response:
    """List the valid keys, without secrets."""
    cursor = visit.query.get("cursor")
    page = await visit.api.get(KEYS, {"limit": 100} | ({"cursor": cursor} if cursor else {}))
    following = page["next_cursor"] and visit.address("/keys", cursor=page["next_cursor"])
    return visit.page("keys.html", command="outbox key list", page=page, following=following)


async def revoke(visit: Visit) -> Response:
    """Revoke a key."""
    await visit.api.delete(f"{KEYS}/{visit.request.path_params['key_id']}")
    return visit.see("/keys", done="revoked")
