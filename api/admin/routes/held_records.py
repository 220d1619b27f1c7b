"""Records that Kafka refuses, and those that wait behind them: list, publish again, give up."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Query

from api.admin.dependencies import (
    MessageReader,
    OperatorCaller,
    ServicesDependency,
    StrictRoute,
    half_of,
    log_action,
)
from api.admin.models.base import OperatorRequest
from api.admin.models.held_records import HeldQuery, SettledRecord
from api.admin.models.page import Page, page_of
from api.admin.services import Services
from api.http.page_token import decode_number_token
from outbox.access import Caller
from outbox.messages.message_id import HalfId
from outbox.operators.bulk_actions import BulkKind
from outbox.operators.held_records import HeldRecord

PATH: Final = "/v1/held-records"
router = APIRouter(prefix=PATH, tags=["held records"], route_class=StrictRoute)


@router.get("", response_model=Page[HeldRecord])
async def list_held_records(
    query: Annotated[HeldQuery, Query()], caller: MessageReader, services: ServicesDependency
) -> Any:
    """List held records, the oldest first; `dropped=true` lists those that were given up."""
    after = decode_number_token(query.cursor)
    found = await services.held.list_held(
        limit=query.limit + 1,
        after=None if after is None else HalfId(after),
        topic=query.topic,
        refused_only=query.refused,
        dropped=query.dropped,
        groups=await services.groups_of(caller),
    )
    return page_of(found, query.limit, lambda held: str(half_of(held.message_id)[0]))


@router.post("/{message_id}/release")
async def release_held_record(
    message_id: str, body: OperatorRequest, caller: OperatorCaller, services: ServicesDependency
) -> SettledRecord:
    """Let the relay try the record and its scope again, within about a second."""
    return await _settle(message_id, body, caller, services, BulkKind.RELEASE_HELD)


@router.post("/{message_id}/drop")
async def drop_held_record(
    message_id: str, body: OperatorRequest, caller: OperatorCaller, services: ServicesDependency
) -> SettledRecord:
    """Give a record up: it is never published, and what waits for it goes on."""
    return await _settle(message_id, body, caller, services, BulkKind.DROP_HELD)


async def _settle(
    message_id: str, body: OperatorRequest, caller: Caller, services: Services, kind: BulkKind
) -> SettledRecord:
    half_id, nonce = half_of(message_id)
    action = body.action_of(caller)
    drops = kind is BulkKind.DROP_HELD
    await services.held.settle(kind, half_id, nonce, action, await services.groups_of(caller))
    log_action("held.drop" if drops else "held.release", action, message_id=message_id)
    return SettledRecord(message_id=message_id, released=not drops, dropped=drops)
