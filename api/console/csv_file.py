"""Tables as files for spreadsheets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from starlette.responses import Response

from outbox.operators.csv_line import csv_line

EXPORTED: Final = 100_000
"""The most lines of an export."""


def csv_file(name: str, columns: Sequence[str], lines: Sequence[str], at_most: int) -> Response:
    """Return the lines as an attachment; where there are more than so many its name says so."""
    shown = f"{name}-first-{at_most}" if len(lines) > at_most else name
    headers = {
        "content-disposition": f"attachment; filename={shown}.csv",
        "cache-control": "no-store",
    }
    text = "".join([csv_line(columns), *lines[:at_most]])
    return Response(text, headers=headers, media_type="text/csv; charset=utf-8")
