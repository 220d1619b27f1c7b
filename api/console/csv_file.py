"""Tables as files for spreadsheets: no cell is a formula."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Final

from starlette.responses import Response

NOT_IN_A_CELL: Final = ("=", "+", "-", "@", "\t", "\r")
"""A cell that begins so is a formula for spreadsheets."""


def csv_line(values: Sequence[object]) -> str:
    """Return one line."""
    line = io.StringIO()
    csv.writer(line).writerow(map(_cell, values))
    return line.getvalue()


def csv_file(name: str, lines: Iterable[str]) -> Response:
    """Return the lines as an attachment of this name."""
    headers = {"content-disposition": f"attachment; filename={name}", "cache-control": "no-store"}
    return Response("".join(lines), headers=headers, media_type="text/csv; charset=utf-8")


def _cell(value: object) -> str:
    text = "" if value is None else str(value)
    return "'" + text if text.startswith(NOT_IN_A_CELL) else text
