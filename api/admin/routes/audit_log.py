"""The audit log: who intervened in what, and why."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from api.admin.dependencies import ReportReader, ServicesDependency, StrictRoute
from api.admin.models.audit_log import AuditQuery
from api.admin.models.page import ScannedPage, scanned_page
from api.http.page_token import decode_number_token
from outbox.errors import InvalidMessageId
from outbox.messages.message_id import HalfId, parse_message_id
from outbox.operators.audit_log import AuditEntry

router = APIRouter(prefix="/v1/audit-log", tags=["audit log"], route_class=StrictRoute)

NO_MESSAGE = HalfId(0)


@router.get("", response_model=ScannedPage[AuditEntry])
async def list_audit_log(
    query: Annotated[AuditQuery, Query()], caller: ReportReader, services: ServicesDependency
) -> Any:
    """List interventions, the newest first; a bound key sees those in its groups."""
    asked = {
        **query.model_dump(),
        "half_id": _half_id(query.message_id),
        "before": decode_number_token(query.cursor),
        "groups": await services.groups_of(caller),
    }
    return scanned_page(await services.audit_log.page(asked))


def _half_id(message_id: str | None) -> HalfId | None:
    """Return the half of a message id; an id that no message has for any other text."""
    if message_id is None:
        return None
    try:
        return parse_message_id(message_id)[0]
    except InvalidMessageId:
        return NO_MESSAGE
