"""Reads messages, and runs operator actions on one message."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request, Response

from api.admin.dependencies import (
    MessageReader,
    OperatorCaller,
    ServicesDependency,
    StrictRoute,
    half_of,
    log_action,
)
from api.admin.models.base import OperatorRequest
from api.admin.models.half_messages import (
    ForceEndRequest,
    HistoryResource,
    MessageConditions,
    MessageQuery,
    Rechecked,
)
from api.admin.models.page import ScannedPage, scanned_page
from api.admin.services import Services
from api.http.admission import require_scope
from api.http.exchange import JSON, entity_tag, is_known
from api.http.page_token import decode_number_token
from api.http.problems import Problem
from api.ingest.answers import end_answer, follows
from api.ingest.schemas import ENCODER
from outbox.access import Caller, Scope
from outbox.messages.message import DecidedBy, End, Resolution, State
from outbox.operators.message_view import MessageFilter, MessageResource

PATH: Final = "/v1/half-messages"
ENDED: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/EndedHalf"}}}}
}
router = APIRouter(prefix=PATH, tags=["half messages"], route_class=StrictRoute)


@router.get("", response_model=ScannedPage[MessageResource], response_model_exclude_unset=True)
async def list_half_messages(
    query: Annotated[MessageQuery, Query()],
    caller: MessageReader,
    services: ServicesDependency,
    request: Request,
    response: Response,
) -> Any:
    """List messages, newest first; never a total."""
    wanted = replace(
        filter_of(query, caller, await services.groups_of(caller)),
        limit=query.limit,
        before=decode_number_token(query.cursor),
    )
    page = scanned_page(await services.browser.page(wanted))
    if page["has_more"]:
        given = [(name, text) for name, text in request.query_params.items() if name != "cursor"]
        address = f"{PATH}?{urlencode([*given, ('cursor', page['next_cursor'])])}"
        response.headers["Link"] = f'<{address}>; rel="next"'
    return page


@router.get("/{message_id}", response_model=MessageResource)
async def get_half_message(
    message_id: str,
    request: Request,
    caller: MessageReader,
    services: ServicesDependency,
    include: Annotated[Literal["payload"] | None, Query()] = None,
) -> Response:
    """Return one message; `include=payload` adds key, headers and value."""
    if include is not None:
        require_scope(caller, Scope.MESSAGES_PAYLOAD)
    message = await find(services, caller, message_id, payload=include is not None)
    body = message.model_dump_json(exclude_unset=True).encode()
    etag = entity_tag(body)
    if is_known(request.headers.get("if-none-match"), etag):
        return Response(status_code=304, headers={"ETag": etag})
    return Response(body, headers={"ETag": etag}, media_type=JSON[1].decode())


@router.get("/{message_id}/history", response_model=HistoryResource)
async def get_half_message_history(
    message_id: str, caller: MessageReader, services: ServicesDependency
) -> Any:
    """Return the events of a message, in order."""
    message = await find(services, caller, message_id)
    events = await services.browser.history(*half_of(message_id))
    return {"message_id": message.message_id, "events": events}


@router.post("/{message_id}/recheck", status_code=202)
async def recheck_half_message(
    message_id: str, body: OperatorRequest, caller: OperatorCaller, services: ServicesDependency
) -> Rechecked:
    """Check the message now; a parked message starts a new round of checks."""
    message = await _leader(services, caller, message_id)
    action = body.action_of(caller)
    due_at = await services.operations.recheck(*half_of(message_id), action)
    log_action("recheck", action, message_id=message)
    return Rechecked(message_id=message, state=State.PREPARED, next_check_at=due_at)


@router.post("/{message_id}/force-end", responses=ENDED)
async def force_end_half_message(
    message_id: str, body: ForceEndRequest, caller: OperatorCaller, services: ServicesDependency
) -> Response:
    """Decide as the operator; the first decision still wins."""
    message = await _leader(services, caller, message_id)
    half_id, nonce = half_of(message)
    end = End(
        half_id=half_id,
        nonce=nonce,
        decision=Resolution(body.decision),
        decided_by=DecidedBy.OPERATOR,
        groups=await services.name_cache.group_ids(caller),
        reason=body.reason,
        actor=body.operator,
    )
    action = body.action_of(caller)
    ended = await services.operations.force_end(end, action)
    log_action("force_end", action, message_id=message)
    answer = end_answer(ended, {})
    if isinstance(answer, Problem):
        raise answer
    return Response(ENCODER.encode(answer), media_type=JSON[1].decode())


async def _leader(services: Services, caller: Caller, message_id: str) -> str:
    """Return the id of a message that has its decision; raises MessageNotFound, or Problem."""
    found = await find(services, caller, message_id)
    if found.message_ids is not None and found.message_ids[0] != found.message_id:
        raise follows(found.message_ids[0])
    return found.message_id


async def find(
    services: Services, caller: Caller, message_id: str, *, payload: bool = False
) -> MessageResource:
    """Return a message that the caller may see; raises MessageNotFound for every other id."""
    groups = await services.groups_of(caller)
    return await services.browser.get(*half_of(message_id), groups, payload=payload)


def filter_of(
    conditions: MessageConditions, caller: Caller, groups: Sequence[int] | None
) -> MessageFilter:
    """Return the requested filter. Raises Problem: a filter by key needs messages:payload."""
    if conditions.key is not None:
        require_scope(caller, Scope.MESSAGES_PAYLOAD)
    given = {name: getattr(conditions, name) for name in MessageConditions.model_fields}
    given["key"] = None if conditions.key is None else conditions.key.encode()
    return MessageFilter(**given, groups=groups)
