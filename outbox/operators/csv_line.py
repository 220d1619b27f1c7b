"""Lines of a file for spreadsheets: no cell is a formula. No I/O."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Final

NOT_IN_A_CELL: Final = ("=", "+", "-", "@", "\t", "\r")
"""A cell that begins so is a formula for spreadsheets."""


def csv_line(values: Sequence[object]) -> str:
    """Return one line; facts with names are JSON in their cell."""
    line = io.StringIO()
    csv.writer(line).writerow(map(_cell, values))
    return line.getvalue()


def _cell(value: object) -> str:
    if isinstance(value, Mapping):
        return json.dumps(dict(value), ensure_ascii=False)
    text = "" if value is None else str(value)
    return "'" + text if text.startswith(NOT_IN_A_CELL) else text
