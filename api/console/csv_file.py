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


async def csv_lines(
    visit: Visit, path: str, query: Query, columns: Sequence[str], at_most: int
) -> list[str]:
    """Return the lines of a list, page by page: other visitors have their turn between."""
    found: list[str] = []
    cursor: dict[str, str] = {}
    while len(found) < at_most:
        asked: Query = {**query, **cursor, "limit": min(PAGE, at_most - len(found))}
        page = await visit.api.get(path, asked)
        found.extend(csv_line([row[name] for name in columns]) for row in page["data"])
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}
    return found


def csv_file(name: str, columns: Sequence[str], lines: Sequence[str]) -> Response:
    """Return at most EXPORTED lines as an attachment; if there are more, its name says so."""
    shown = f"{name}-first-{EXPORTED}" if len(lines) > EXPORTED else name
    headers = {
        "content-disposition": f"attachment; filename={shown}.csv",
        "cache-control": "no-store",
    }
    text = "".join([csv_line(columns), *lines[:EXPORTED]])
    return Response(text, headers=headers, media_type="text/csv; charset=utf-8")
