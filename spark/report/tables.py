"""Findings as CSV for a spreadsheet."""

from __future__ import annotations

import csv
from io import StringIO
from typing import Final

from spark.findings.ledger import ACCEPTED
from spark.report.document import finding_document
from spark.report.report import Report

COLUMNS: Final = (
    *("finding_id", "kind", "class", "detail", "severity", "status", "message_id", "topic"),
    *("partition", "offset", "key", "key_hash", "producer_group", "shard", "decision"),
    *("decided_at", "command"),
)
FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r")
"""The starts of a cell that a spreadsheet would run as a formula."""


def to_csv(report: Report) -> str:
    """Return the kept findings and then the accepted ones as CSV; no cell can be a formula."""
    out = StringIO()
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    counted = [finding_document(each, report) for each in report.findings]
    accepted = [finding_document(each, report, ACCEPTED) for each in report.accepted]
    for shown in (*counted, *accepted):
        writer.writerow([safe(shown[name]) for name in COLUMNS])
    return out.getvalue()


def safe(cell: object) -> str:
    """Return the text of a cell, with a prefix if a spreadsheet would calculate it."""
    text = "" if cell is None else str(cell)
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text
