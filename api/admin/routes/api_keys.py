"""API keys: create, list and revoke."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Response

from api.admin.dependencies import NO_STORE, Admin, ServicesDependency, StrictRoute
from api.admin.models.api_keys import (
    IssuedKey,
    KeyQuery,
    KeyRequest,
    RevokeQuery,
)
from api.admin.models.page import Page, page_of
from api.http.problems import Problem, invalid
from outbox.access import ApiKey, NewApiKey
from outbox.errors import TimePast
from outbox.telemetry.events import Event, get_logger

router = APIRouter(prefix="/v1/api-keys", tags=["API keys"], route_class=StrictRoute)

BEYOND: Final = "a key has no groups and no scopes beyond those of the key that creates it"


@router.post("", status_code=201)
async def create_api_key(
    body: KeyRequest, caller: Admin, services: ServicesDependency, response: Response
) -> IssuedKey:
    """Create a key within the caller's own groups; `api_key` is returned only here."""
    new = NewApiKey(
        name=body.name,
        producer_groups=tuple(dict.fromkeys(body.producer_groups)),
        scopes=tuple(dict.fromkeys(body.scopes)),
        expires_at=body.expires_at,
    )
    if not caller.covers(new.producer_groups, new.scopes):
        raise Problem(slug="scope-missing", detail=BEYOND)
    try:
        key, token = await services.keys.create(new, caller.key_id)
    except TimePast as error:
        raise invalid("/expires_at", str(error)) from None
    get_logger().info(Event.KEY_CHANGED, change="created", key_id=key.key_id)
    response.headers.update(NO_STORE)
    response.headers["Location"] = f"/v1/api-keys/{key.key_id}"
    return IssuedKey(**asdict(key), api_key=token)


@router.get("", response_model=Page[ApiKey])
async def list_api_keys(
    query: Annotated[KeyQuery, Query()], caller: Admin, services: ServicesDependency
) -> Any:
    """List the keys that are not revoked, within the caller's own groups, without secrets.

    `refused=true` lists those that have ended and that somebody used in the last five minutes.
    """
    one_more = query.limit + 1
    keys = await services.keys.page(query.after, one_more, caller.groups, refused=query.refused)
    return page_of(keys, query.limit, lambda key: key.key_id)


@router.delete("/{key_id}", status_code=204)
async def revoke_api_key(
    key_id: str,
    query: Annotated[RevokeQuery, Query()],
    caller: Admin,
    services: ServicesDependency,
) -> Response:
    """Revoke a key within the caller's own groups; it stops working everywhere within 5 s."""
    if "\x00" in key_id or not await services.keys.revoke(
        key_id, caller.key_id, caller.groups, query.operator
    ):
        raise Problem(slug="not-found")
    services.forget_key(key_id)
    get_logger().info(Event.KEY_CHANGED, change="revoked", key_id=key_id)
    return Response(status_code=204)
