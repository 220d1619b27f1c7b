"""Operator actions on many messages: by filter, with a dry run, a limit and a reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Annotated, Final, Literal
from uuid import UUID

from fastapi import APIRouter, Response

from api.admin.acceptances import SAMPLE, accept
from api.admin.dependencies import NoQuery, ServicesDependency, StrictRoute, needs
from api.admin.models.base import OperatorRequest
from api.admin.models.bulk_actions import BulkRequest, BulkResource, DryRun, RefusedFinding
from api.admin.routes.half_messages import filter_of
from api.admin.services import Services
from api.http.problems import Problem, invalid
from outbox.access import Caller, Scope
from outbox.errors import InvalidMessageId
from outbox.messages.message import Resolution, State
from outbox.messages.message_id import HalfId, Nonce, parse_message_id
from outbox.operators.bulk_actions import BulkAction, BulkKind, BulkOrder
from outbox.operators.message_view import MessageFilter, OperatorAction
from outbox.telemetry.events import Event, get_logger

PATH: Final = "/v1/bulk-actions"
UNDECIDED: Final = (State.PREPARED, State.PARKED)
router = APIRouter(prefix=PATH, tags=["bulk actions"], route_class=StrictRoute)

OperatorCaller = Annotated[Caller, needs(Scope.OPS_FORCE)]


@router.post(
    "",
    response_model=BulkResource | DryRun,
    status_code=202,
    dependencies=[NoQuery],
    responses={200: {"model": DryRun, "description": "The result of a dry run"}},
)
async def begin(
    body: BulkRequest, caller: OperatorCaller, services: ServicesDependency, response: Response
) -> BulkResource | DryRun:
    """Act on every message that matches now; a dry run only counts and samples them."""
    groups = await services.groups_of(caller)
    kind = BulkKind(body.action)
    if kind is BulkKind.ACCEPT_FINDING:
        done = await accept(body, caller, services, response)
        return done if isinstance(done, DryRun) else _stored(done, body, caller, response)
    server_started_at = await services.bulk_actions.server_started_at()
    found, refused = await _matched(body, caller, services, groups)
    if body.dry_run:
        response.status_code = 200
        return await _dry_run(services, body.max_items, found, refused)
    if len(found) > body.max_items:
        more = f"more than max_items ({body.max_items}) match"
        raise invalid("/filter", more, "filter-too-broad")
    action = OperatorAction(operator=body.operator, reason=body.reason, key_id=caller.key_id)
    order = BulkOrder(
        kind=kind,
        decision=Resolution(body.decision) if body.decision else None,
        groups=groups,
        asked=body.filter.model_dump(mode="json", exclude_none=True, exclude={"key"}),
        action=action,
        rate=body.rate,
        delay_seconds=body.delay_seconds,
        server_started_at=server_started_at,
    )
    number = await services.bulk_actions.begin(order, found)
    services.wake_bulk_runner()
    started = BulkAction(
        id=number,
        matched=len(found),
        done=0,
        failed=0,
        failures=(),
        finished=False,
        starts_in_seconds=float(body.delay_seconds),
    )
    return _stored(started, body, caller, response)


@router.get("/{action_id}", response_model=BulkResource, dependencies=[NoQuery])
async def read(
    action_id: str, caller: OperatorCaller, services: ServicesDependency
) -> BulkResource:
    """Return the progress of an action."""
    found = await services.bulk_actions.get(_number(action_id), await services.groups_of(caller))
    if found is None:
        raise Problem(slug="not-found")
    return _resource(found)


@router.post("/{action_id}/cancel", response_model=BulkResource, dependencies=[NoQuery])
async def cancel(
    action_id: str, body: OperatorRequest, caller: OperatorCaller, services: ServicesDependency
) -> BulkResource:
    """Do nothing more of an action; what is done stays done, and a finished one stays as it is."""
    action = OperatorAction(operator=body.operator, reason=body.reason, key_id=caller.key_id)
    groups = await services.groups_of(caller)
    found = await services.bulk_actions.cancel(_number(action_id), groups, action)
    if found is None:
        raise Problem(slug="not-found")
    return _resource(found)


@router.post("/{action_id}/resume", response_model=BulkResource, dependencies=[NoQuery])
async def resume_action(
    action_id: str, body: OperatorRequest, caller: OperatorCaller, services: ServicesDependency
) -> BulkResource:
    """Go on with a cancelled action where it stopped; any other stays as it is."""
    action = OperatorAction(operator=body.operator, reason=body.reason, key_id=caller.key_id)
    groups = await services.groups_of(caller)
    found = await services.bulk_actions.resume(_number(action_id), groups, action)
    if found is None:
        raise Problem(slug="not-found")
    services.wake_bulk_runner()
    return _resource(found)


def _number(action_id: str) -> UUID:
    try:
        return UUID(action_id)
    except ValueError:
        raise Problem(slug="not-found") from None


async def _matched(
    body: BulkRequest, caller: Caller, services: Services, groups: frozenset[int] | None
) -> tuple[Sequence[HalfId], list[RefusedFinding] | None]:
    """Return the messages to act on, and the findings that ``republish`` refuses."""
    kind, limit = BulkKind(body.action), body.max_items + 1
    if body.filter.message_ids is not None:
        named = frozenset(_named(body.filter.message_ids))
        return (await services.bulk_actions.match_named(kind, named, groups))[:limit], None
    if kind is not BulkKind.REPUBLISH:
        filters = _filters(body, caller, groups)
        return await services.bulk_actions.match(kind, filters, limit), None
    finding_ids = body.filter.finding_ids or []
    plan = await services.repairs.plan(finding_ids, groups, accept_order=body.accept_order)
    found = {each.half_id for each in plan if each.half_id is not None and not each.refused}
    refused = [
        RefusedFinding(finding_id=each.finding_id, code=each.refused)  # type: ignore[arg-type]
        for each in plan
        if each.refused is not None
    ]
    return sorted(found)[:limit], refused


def _named(message_ids: Sequence[str]) -> Iterator[tuple[HalfId, Nonce]]:
    """Return the messages that these ids may name."""
    for each in message_ids:
        with suppress(InvalidMessageId):
            yield parse_message_id(each)


def _filters(
    body: BulkRequest, caller: Caller, groups: frozenset[int] | None
) -> list[MessageFilter]:
    """Return one filter per state that the action accepts. Raises Problem."""
    given = body.filter
    if not given.model_dump(exclude_none=True):
        raise invalid("/filter", "needs at least one condition", "filter-too-broad")
    allowed = (State.COMMITTED,) if BulkKind(body.action).is_held else UNDECIDED
    if given.state is not None and given.state not in allowed:
        raise invalid("/filter/state", f"{body.action} takes {' or '.join(allowed)}")
    states = allowed if given.state is None else (given.state,)
    return [
        filter_of(given.model_copy(update={"state": state}), caller, groups) for state in states
    ]


async def _dry_run(
    services: Services,
    max_items: int,
    found: Sequence[HalfId],
    refused: list[RefusedFinding] | None,
) -> DryRun:
    views = [await services.browser.get(half_id) for half_id in found[:SAMPLE]]
    sample = [str(view.half.message_id) for view in views if view is not None]
    return DryRun(
        matched=min(len(found), max_items),
        more=len(found) > max_items,
        sample=sample,
        refused=refused,
    )


def _resource(found: BulkAction) -> BulkResource:
    return BulkResource(
        id=str(found.id),
        status=_status(found),
        starts_in_seconds=round(found.starts_in_seconds, 1),
        matched=found.matched,
        done=found.done,
        failed=found.failed,
        failures=[dict(failure) for failure in found.failures],
    )


def _status(found: BulkAction) -> Literal["waiting", "running", "finished", "cancelled"]:
    if found.finished:
        return "cancelled" if found.cancelled else "finished"
    return "waiting" if found.starts_in_seconds else "running"


def _stored(
    action: BulkAction, body: BulkRequest, caller: Caller, response: Response
) -> BulkResource:
    """Log an action that is now stored, and return its resource."""
    get_logger().info(
        Event.OPERATOR_ACTION,
        action=f"bulk.{body.action}",
        bulk_action=str(action.id),
        matched=action.matched,
        operator=body.operator,
        key_id=caller.key_id,
    )
    response.headers["Location"] = f"{PATH}/{action.id}"
    return _resource(action)
