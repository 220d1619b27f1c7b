"""Operator actions on many messages: by filter, with a dry run, a limit and a reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final
from uuid import UUID

from fastapi import APIRouter, Response

from api.admin.dependencies import (
    OperatorCaller,
    ServicesDependency,
    StrictRoute,
    log_action,
)
from api.admin.models.base import OperatorRequest
from api.admin.models.bulk_actions import BulkRequest, DryRun
from api.admin.routes.half_messages import filter_of
from api.admin.services import Services
from api.http.problems import Problem, invalid
from outbox.access import Caller
from outbox.errors import InvalidMessageId
from outbox.messages.message import Resolution, State
from outbox.messages.message_id import HalfId, Nonce, parse_message_id
from outbox.operators.bulk_actions import BulkAction, BulkMatch, BulkOrder
from outbox.operators.message_view import MessageFilter

PATH: Final = "/v1/bulk-actions"
SAMPLE: Final = 10
UNDECIDED: Final = (State.PREPARED, State.PARKED)
router = APIRouter(prefix=PATH, tags=["bulk actions"], route_class=StrictRoute)


@router.post(
    "",
    status_code=202,
    responses={200: {"model": DryRun, "description": "The result of a dry run"}},
)
async def begin_bulk_action(
    body: BulkRequest, caller: OperatorCaller, services: ServicesDependency, response: Response
) -> BulkAction | DryRun:
    """Act on every message that matches now; a dry run only counts and samples them."""
    order = _order(body, caller, await services.groups_of(caller))
    if body.dry_run:
        response.status_code = 200
        return await _dry_run(services, order, await services.bulk_actions.match(order))
    started = await services.bulk_actions.begin(order)
    if started is None:
        more = f"matches more than max_items ({body.max_items})"
        raise invalid("/filter", more, "filter-too-broad")
    facts = {"bulk_action": str(started.id), "matched": started.matched}
    log_action(f"bulk.{body.action}", order.action, **facts)
    response.headers["Location"] = f"{PATH}/{started.id}"
    return started


@router.get("/{action_id}")
async def get_bulk_action(
    action_id: UUID, caller: OperatorCaller, services: ServicesDependency
) -> BulkAction:
    """Return the progress of an action."""
    found = await services.bulk_actions.get(action_id, await services.groups_of(caller))
    return _known(found)


@router.post("/{action_id}/cancel")
async def cancel_bulk_action(
    action_id: UUID, body: OperatorRequest, caller: OperatorCaller, services: ServicesDependency
) -> BulkAction:
    """Do nothing more of an action; what is done stays done, and a finished one stays as it is."""
    groups, action = await services.groups_of(caller), body.action_of(caller)
    return _known(await services.bulk_actions.cancel(action_id, groups, action))


def _order(body: BulkRequest, caller: Caller, groups: Sequence[int] | None) -> BulkOrder:
    """Return the order. Raises Problem for a filter that the action does not take."""
    given = body.filter
    named = None if given.message_ids is None else dict(_named(given.message_ids))
    by_filter = named is None and given.finding_ids is None
    return BulkOrder(
        kind=body.action,
        decision=Resolution(body.decision) if body.decision else None,
        filters=_filters(body, caller, groups) if by_filter else (),
        named=named,
        finding_ids=given.finding_ids,
        accept_order=body.accept_order,
        groups=groups,
        asked=given.model_dump(mode="json", exclude_none=True, exclude={"key"}),
        action=body.action_of(caller),
        max_items=body.max_items,
        delay_seconds=body.delay_seconds,
    )


def _named(message_ids: Sequence[str]) -> Iterator[tuple[HalfId, Nonce]]:
    """Return the messages that these ids may name."""
    for each in message_ids:
        with suppress(InvalidMessageId):
            yield parse_message_id(each)


def _filters(
    body: BulkRequest, caller: Caller, groups: Sequence[int] | None
) -> list[MessageFilter]:
    """Return one filter per state that the action accepts. Raises Problem."""
    given = body.filter
    if not given.model_dump(exclude_none=True):
        raise invalid("/filter", "needs at least one condition", "filter-too-broad")
    allowed = (State.COMMITTED,) if body.action.is_held else UNDECIDED
    if given.state is not None and given.state not in allowed:
        raise invalid("/filter/state", f"must be {' or '.join(allowed)} to {body.action}")
    states = allowed if given.state is None else (given.state,)
    return [
        filter_of(given.model_copy(update={"state": state}), caller, groups) for state in states
    ]


async def _dry_run(services: Services, order: BulkOrder, found: BulkMatch) -> DryRun:
    sample = await services.browser.named(found.half_ids[:SAMPLE])
    matched = len(found.half_ids)
    return DryRun(
        matched=min(matched, order.max_items),
        more=matched > order.max_items,
        sample=[each.message_id for each in sample],
        refused=None if found.refused is None else list(found.refused),
    )


def _known(found: BulkAction | None) -> BulkAction:
    """Return an action. Raises Problem if the caller sees none."""
    if found is None:
        raise Problem(slug="not-found")
    return found
