"""Tables as files for spreadsheets."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.responses import Response


def csv_file(name: str, lines: Iterable[str]) -> Response:
    """Return the lines as an attachment of this name."""
    headers = {"content-disposition": f"attachment; filename={name}", "cache-control": "no-store"}
    return Response("".join(lines), headers=headers, media_type="text/csv; charset=utf-8")
