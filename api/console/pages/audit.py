"""The audit log: who did what, and why; filtered, and exported as it is filtered."""

from __future__ import annotations

import shlex
from typing import Final

from starlette.responses import Response

from api.console.csv_file import EXPORTED, csv_file
from api.console.in_process_api import Query
from api.console.visit import Visit
from outbox.operators.csv_line import csv_line

AUDIT: Final = "/v1/audit-log"
SHOWN: Final = 50
EXPORT_PAGE: Final = 500
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
    given = _given(visit)
    cursor = visit.query.get("cursor")
    asked: Query = {"limit": SHOWN, **given, **({"cursor": cursor} if cursor else {})}
    page = await visit.api.get(AUDIT, asked)
    following = page["next_cursor"] and visit.address("/audit", **given, cursor=page["next_cursor"])
    return visit.page(
        "audit.html",
        commands=[_command(given)],
        filters=FILTERS,
        given=given,
        page=page,
        following=following,
        export=visit.address("/audit/export", **given),
        exported=EXPORTED,
    )


async def export(visit: Visit) -> Response:
    """Return exactly what matches as CSV, at most EXPORTED entries."""
    lines: list[str] = []
    cursor: dict[str, str] = {}
    while len(lines) <= EXPORTED:
        page = await visit.api.get(AUDIT, {"limit": EXPORT_PAGE, **_given(visit), **cursor})
        lines.extend(csv_line([row[name] for name in COLUMNS]) for row in page["data"])
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}
    return csv_file("audit", COLUMNS, lines, EXPORTED)


def _command(given: dict[str, str]) -> str:
    """Return the command line that lists the same entries."""
    flags = (f"--{name.replace('_', '-')} {shlex.quote(text)}" for name, text in given.items())
    return " ".join(["outbox audit list", *flags])


def _given(visit: Visit) -> dict[str, str]:
    """Return the filters that were filled in."""
    asked = {name: visit.query.get(name, "").strip() for name in FILTERS}
    return {name: text for name, text in asked.items() if text}
