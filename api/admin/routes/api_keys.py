"""API keys: created once, shown once, revoked for good."""

from __future__ import annotations

from datetime import UTC
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from api.admin.dependencies import NoQuery, ServicesOf, StrictRoute, needs
from api.admin.resources import key_resource
from api.http.page_token import seal, unseal
from api.http.problems import Problem, invalid
from api.models import KeyPage, KeyRequest, NewKeyResource, PageQuery
from outbox.access import Caller, NewApiKey, Scope
from outbox.telemetry.events import Event, get_logger

router = APIRouter(prefix="/v1/api-keys", tags=["API keys"], route_class=StrictRoute)

Admin = Annotated[Caller, needs(Scope.ADMIN)]


@router.post("", response_model=NewKeyResource, status_code=201, dependencies=[NoQuery])
async def create_api_key(
    body: KeyRequest, caller: Admin, services: ServicesOf, response: Response
) -> NewKeyResource:
    """Create a key; `api_key` is shown this once."""
    if body.expires_at is not None and body.expires_at.tzinfo is None:
        raise invalid("/expires_at", "needs a time zone, for example Z")
    asked = NewApiKey(
        name=body.name,
        producer_groups=tuple(dict.fromkeys(body.producer_groups)),
        scopes=tuple(dict.fromkeys(body.scopes)),
        expires_at=body.expires_at.astimezone(UTC) if body.expires_at else None,
    )
    key, token = await services.keys.create(asked, caller.key_id)
    get_logger().info(Event.KEY_CHANGED, change="created", key_id=key.key_id)
    response.headers["Location"] = f"/v1/api-keys/{key.key_id}"
    return NewKeyResource(**key_resource(key).model_dump(), api_key=token)


@router.get("", response_model=KeyPage)
async def list_api_keys(
    query: Annotated[PageQuery, Query()], caller: Admin, services: ServicesOf
) -> Any:
    """List standing keys, without secrets."""
    after = unseal(query.cursor) if query.cursor is not None else ""
    keys = await services.keys.page(after, query.limit + 1)
    shown, more = keys[: query.limit], len(keys) > query.limit
    return {
        "data": [key_resource(key) for key in shown],
        "next_cursor": seal(shown[-1].key_id) if more else None,
        "has_more": more,
    }


@router.delete("/{key_id}", status_code=204, dependencies=[NoQuery])
async def revoke_api_key(key_id: str, caller: Admin, services: ServicesOf) -> Response:
    """Revoke a key; it stops working everywhere within seconds."""
    if "\x00" in key_id or not await services.keys.revoke(key_id, caller.key_id):
        raise Problem(slug="not-found")
    services.forget_keys()
    get_logger().info(Event.KEY_CHANGED, change="revoked", key_id=key_id)
    return Response(status_code=204)
