"""The acceptance of findings: a bulk action that is finished when the response is sent."""

from __future__ import annotations

from typing import Final

from fastapi import Response

from api.admin.models.bulk_actions import BulkRequest, DryRun, RefusedFinding
from api.admin.services import Services
from api.http.problems import invalid
from outbox.access import Caller
from outbox.errors import TimePast
from outbox.operators.acceptances import AcceptanceOrder
from outbox.operators.bulk_actions import BulkAction
from outbox.operators.message_view import OperatorAction

SAMPLE: Final = 10


async def accept(
    body: BulkRequest, caller: Caller, services: Services, response: Response
) -> DryRun | BulkAction:
    """Accept the requested findings, or return the result of a dry run. Raises Problem."""
    groups, until = await services.groups_of(caller), body.until
    assert until is not None
    try:
        plan = await services.acceptances.plan(body.filter.finding_ids or [], groups, until)
    except TimePast as error:
        raise invalid("/until", str(error)) from None
    found = [each.finding_id for each in plan if each.refused is None]
    if body.dry_run:
        response.status_code = 200
        return DryRun(
            matched=min(len(found), body.max_items),
            more=len(found) > body.max_items,
            sample=found[:SAMPLE],
            refused=[
                RefusedFinding(finding_id=each.finding_id, code=each.refused)  # type: ignore[arg-type]
                for each in plan
                if each.refused is not None
            ],
        )
    if len(found) > body.max_items:
        more = f"more than max_items ({body.max_items}) match"
        raise invalid("/filter", more, "filter-too-broad")
    action = OperatorAction(operator=body.operator, reason=body.reason, key_id=caller.key_id)
    order = AcceptanceOrder(until=until, groups=groups, action=action)
    return await services.acceptances.accept(found, order)
