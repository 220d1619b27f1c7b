"""Leaves a finished run behind: its row, findings and reports in the database, then its files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from outbox.reconciliation.ports import RunStore
from spark.report import document, page, tables
from spark.report.notification import critical_ids, news_of
from spark.report.report import Report, stored_run
from spark.run_context import RunContext

FILES: Final = {
    "html": ("html", "report.html"),
    "json": ("json", "report.json"),
    "md": ("markdown", "report.md"),
    "csv": ("csv", "findings.csv"),
}
"""Of each form of the report: its name in the JSON, and its file."""


def publish_and_tell(
    report: Report, parts: RunContext, samples: int, topics: Sequence[str] = ()
) -> dict[str, Any]:
    """Publish a run, then tell of it where it has news, and by its metrics.

    A deaf endpoint and a file that cannot be written change no verdict.

    Raises DatabaseUnavailable; then nothing was told.
    """
    before = parts.run_store.before(report.run_id, critical_ids(report))
    shown = publish(report, parts.run_store, samples, topics)
    if parts.tell is not None:
        news = news_of(report, before)
        said = "no news" if news is None else parts.tell(report.run_id, news)
        parts.progress.note(f"webhook: {said}")
    if parts.expose is not None:
        parts.progress.note(f"metrics: {parts.expose()}")
    return shown


def publish(
    report: Report, run_store: RunStore, samples: int, topics: Sequence[str] = ()
) -> dict[str, Any]:
    """Store the run in one transaction, write the files, and return the report as JSON values.

    Raises DatabaseUnavailable; then no file has been written.
    """
    paths = {form: report.folder / FILES[form][1] for form in report.formats}
    files = {FILES[form][0]: str(path) for form, path in paths.items()}
    files["parquet"] = str(report.folder / "findings")
    shown = document.document(report, files, topics)
    bodies = {
        "html": page.to_html(report, samples, topics),
        "json": json.dumps(shown, indent=2),
        "md": page.to_markdown(report, samples, topics),
        "csv": tables.to_csv(report),
    }
    run_store.save(stored_run(report, bodies))
    report.folder.mkdir(parents=True, exist_ok=True)
    for form, path in paths.items():
        path.write_text(bodies[form], "utf-8")
    return shown
