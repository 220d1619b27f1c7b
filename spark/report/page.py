"""A report as one self-contained HTML page and as Markdown: verdict first, then what to do.

No script, nothing loaded from elsewhere, all text escaped by the template engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from spark.compare.sha256_check import Digest
from spark.findings.finding_class import RULES, Graded
from spark.report import svg, trends
from spark.report.document import command, coverage, finding_document, of_topics
from spark.report.language import words_of
from spark.report.report import COVERED, Report, spaced
from spark.report.tables import class_rows

CHANGED: Final = (
    "{new} new, {resolved} resolved, {fixed} fixed by a repair, {unverifiable} unverifiable "
    "since the run before."
)
COMPARED_BY: Final = {Digest.XXH64: "XXH64", Digest.SHA256: "XXH64 + SHA-256"}
BACKSLASH_ESCAPES: Final = str.maketrans({each: f"\\{each}" for each in "\\`*_{}[]<>#|~"})


def to_html(report: Report, samples: int, topics: Sequence[str] = ()) -> str:
    """Return the page; at most ``samples`` findings of a class are listed."""
    template = _environment(autoescape=True).get_template("report.html.j2")
    t = words_of(report.language)
    charts = {
        "chart": svg.chart(report.minutes, t),
        "latency_chart": trends.latency_chart(report.latencies, t),
        "runs_chart": trends.runs_chart(report, t),
        "coverage_chart": trends.coverage_chart(report, t),
    }
    return template.render(_shown(report, samples, topics), **charts)


def to_markdown(report: Report, samples: int, topics: Sequence[str] = ()) -> str:
    """Return the same on one page of Markdown; text of others cannot become markup."""
    template = _environment(autoescape=False).get_template("report.md.j2")
    return template.render(_shown(report, samples, topics))


def _environment(*, autoescape: bool) -> Environment:
    environment = Environment(
        loader=PackageLoader("spark.report"),
        autoescape=autoescape,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["spaced"] = spaced
    environment.filters["seconds"] = trends.in_seconds
    environment.filters["md"] = lambda text: str(text).translate(BACKSLASH_ESCAPES)
    return environment


def _shown(report: Report, samples: int, topics: Sequence[str]) -> dict[str, Any]:
    t = words_of(report.language)
    covered = t(COVERED, partitions=report.partitions_read, shards=report.shards_read)
    return {
        "report": report,
        "t": t,
        "changed": t(CHANGED, **_changes(report)),
        "covered": t("{covered}.", covered=covered),
        "compared_by": COMPARED_BY[report.digest],
        "cut_at": report.plan.cut_at,
        "coverage": coverage(report),
        "class_rows": class_rows(report),
        "rules": RULES,
        "topic_latencies": [each for each in report.latencies if each.topic is not None],
        "sections": _sections(report, samples, topics),
        "accepted": of_topics(report.accepted, topics)[:samples],
    }


def _changes(report: Report) -> dict[str, str]:
    """Return how many findings of the run before have become what."""
    names = ("new", "resolved", "fixed", "unverifiable")
    return {name: spaced(getattr(report.changes, name)) for name in names}


def _sections(report: Report, samples: int, topics: Sequence[str]) -> list[dict[str, Any]]:
    """Return the findings by class, worst first, each with its evidence and command."""
    by_class: dict[Graded, list[dict[str, Any]]] = {}
    for finding in of_topics(report.findings, topics):
        listed = by_class.setdefault(finding.graded, [])
        if len(listed) < samples:
            shown = finding_document(finding, report)
            new = finding.finding_id not in report.changes.known
            listed.append({**shown, "command": command(finding, report.run_id), "new": new})
    return [
        {
            "class": each.finding_class,
            "severity": each.severity.name.lower(),
            "rule": RULES[each.finding_class],
            "findings": listed,
            "total": report.graded[each],
        }
        for each, listed in by_class.items()
    ]
