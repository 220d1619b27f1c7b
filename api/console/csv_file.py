"""Lists as files for spreadsheets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from starlette.responses import Response

from api.console.in_process_api import Query
from api.console.visit import Visit
from outbox.operators.csv_line import csv_line

EXPORTED: Final = 100_000
"""The most lines of an export."""
PAGE: Final = 500


async def csv_file(
    visit: Visit, name: str, path: str, queries: Sequence[Query], columns: Sequence[str]
) -> Response:
    """Return at most EXPORTED rows of a list as an attachment; if there are more, its name says so.

    The rows are read page by page: other visitors have their turn between.
    """
    lines = [csv_line(columns)]
    for query in queries:
        cursor: Query | None = {}
        while cursor is not None and len(lines) <= EXPORTED + 1:
            page = await visit.api.get(path, {**query, **cursor, "limit": PAGE})
            lines.extend(csv_line([row[each] for each in columns]) for row in page["data"])
            cursor = {"cursor": page["next_cursor"]} if page["next_cursor"] else None
    shown = f"{name}-first-{EXPORTED}" if len(lines) > EXPORTED + 1 else name
    headers = {
        "content-disposition": f"attachment; filename={shown}.csv",
        "cache-control": "no-store",
    }
    text = "".join(lines[: EXPORTED + 1])
    return Response(text, headers=headers, media_type="text/csv; charset=utf-8")
