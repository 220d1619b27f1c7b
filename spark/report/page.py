"""A report as one self-contained HTML page: verdict first, then what to do.

The page has no script and loads nothing. The template engine escapes all text.
"""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from outbox.reconciliation.log import WHOLE_TOPIC
from spark.findings.finding_class import GradedCause
from spark.findings.finding_rules import RULES
from spark.report.do_first import cause_rows, period
from spark.report.document import document, finding_document
from spark.report.report import Report, format_count, place_name
from spark.report.topic_counts import COLUMNS


def to_html(report: Report, samples: int) -> str:
    """Return the page; it lists at most ``samples`` findings per cause."""
    template = _environment().get_template("report.html.j2")
    return template.render(_template_values(report, samples))


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("spark.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["format_count"] = format_count
    environment.filters["place_name"] = place_name
    environment.filters["period"] = period
    environment.filters["seconds"] = _in_seconds
    environment.filters["first_upper"] = lambda text: text[:1].upper() + text[1:]
    return environment


def _template_values(report: Report, samples: int) -> dict[str, Any]:
    shown = document(report, {})
    return {
        "report": report,
        "shown": shown,
        "first_of_kind": {each["kind"]: each for each in reversed(shown["do_first"])},
        "count_columns": COLUMNS,
        "rules": RULES,
        "sections": _sections(report, samples),
        "accepted": report.accepted[:samples],
        "whole_topic": WHOLE_TOPIC,
    }


def _in_seconds(seconds: float) -> str:
    """Return a duration with its significant digits."""
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def _sections(report: Report, samples: int) -> list[dict[str, Any]]:
    """Return the findings by cause, the worst first, each with its evidence and command."""
    by_cause: dict[GradedCause, list[dict[str, Any]]] = {}
    for finding in report.findings:
        listed = by_cause.setdefault(finding.graded, [])
        if len(listed) < samples:
            new = finding.finding_id not in report.changes.known_ids
            listed.append({**finding_document(finding, report), "new": new})
    totals = report.graded
    return [
        {**row, "findings": by_cause.get(graded, []), "total": totals.get(graded, 0)}
        for graded, row in cause_rows(report).items()
    ]
