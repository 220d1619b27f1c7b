"""The audit log: who did what, and why; filtered, and exported as it is filtered."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from api.console.csv_file import EXPORTED, csv_file
from api.console.visit import Visit

AUDIT: Final = "/v1/audit-log"
SHOWN: Final = 50
FILTERS: Final = {
    "operator": "Operator",
    "action": "Action",
    "producer_group": "Group",
    "topic": "Topic",
    "transaction_id": "Transaction",
    "message_id": "Message",
    "key_id": "Key",
    "at_from": "From",
    "at_to": "To",
}
COLUMNS: Final = ("at", "action", "target", "operator", "reason", "key_id", "detail")


async def show(visit: Visit) -> Response:
    """List what matches the filters, the newest first."""
    given = visit.given(FILTERS)
    return visit.page(
        "audit.html",
        filters=FILTERS,
        given=given,
        page=await visit.list(AUDIT, "/audit", limit=SHOWN, **given),
        export=visit.address("/audit/export", **given),
        exported=EXPORTED,
    )


async def export(visit: Visit) -> Response:
    """Return exactly what matches as CSV, at most EXPORTED entries."""
    return await csv_file(visit, "audit", AUDIT, [visit.given(FILTERS)], COLUMNS)
