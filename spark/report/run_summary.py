"""What a run prints on a terminal; its last three lines are for scripts as well."""

from __future__ import annotations

from typing import Any

from spark.report.do_first import do_first, period
from spark.report.report import Report, format_count


def summary(report: Report) -> str:
    """Return the lines of a finished run, with what to do first."""
    totals = ", ".join(f"{kind} {format_count(n)}" for kind, n in report.totals.items())
    return (
        f"{report.sentence}\n"
        f"{report.course}\n"
        f"in flight {format_count(report.counts.in_flight)}, "
        f"waiting for a decision {format_count(report.counts.prepared)}, "
        f"parked {format_count(report.counts.parked)}\n"
        f"{''.join(map(_line, do_first(report)))}"
        f"verdict: {report.verdict}\n"
        f"totals: {totals}\n"
        f"report: {report.folder / 'report.html'}\n"
    )


def _line(row: dict[str, Any]) -> str:
    at = f", {period(row)}" if row["first"] else ""
    found = f"{row['severity']} {row['class']}/{row['detail']} {format_count(row['findings'])}"
    return f"{found}{at}: {row['command']}\n"
