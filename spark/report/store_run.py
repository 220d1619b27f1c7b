"""Stores a finished run: in the database, then as files and in the tables of all runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from outbox.reconciliation.run import StoredRun
from spark.findings.stored_finding import stored_finding
from spark.report import document, page, tables
from spark.report.report import Report
from spark.report.run_tables import FOLDER, add_run

if TYPE_CHECKING:
    from outbox.postgres.reconciliation.run_store import PostgresRunStore

FILES: Final = {"html": "report.html", "json": "report.json", "csv": "findings.csv"}
"""The file of each format of the report."""


def store_run(
    report: Report,
    run_store: PostgresRunStore,
    samples: int,
) -> dict[str, Any]:
    """Store the run in one transaction, write the files, and return the report as JSON values.

    Raises DatabaseUnavailable; then no file has been written. Raises OSError.
    """
    paths = {form: report.folder / name for form, name in FILES.items()}
    files = {form: str(path) for form, path in paths.items()}
    files["parquet"] = str(report.folder.parent / FOLDER)
    shown = document.document(report, files)
    bodies = {
        "html": page.to_html(report, samples),
        "json": json.dumps(shown, indent=2),
        "csv": tables.to_csv(report),
    }
    stored = stored_run(report, bodies)
    run_store.save(stored)
    report.folder.mkdir(parents=True, exist_ok=True)
    for form, path in paths.items():
        path.write_text(bodies[form], "utf-8")
    add_run(report, {**shown, **stored.row})
    return shown


def stored_run(report: Report, reports: Mapping[str, str]) -> StoredRun:
    """Return the run as the database keeps it."""
    return StoredRun(
        run_id=report.run_id,
        row={
            "previous_run_id": report.previous_run_id,
            "mode": report.plan.origin.mode,
            "started_at": report.started_at,
            "cut_at": report.plan.snapshot.taken_at,
            "verdict": report.verdict.value,
            "sentence": report.sentence,
            "plan": {**report.plan.as_json(), "coverage": report.coverage_ratio},
            "totals": report.totals,
        },
        complete=report.resolves,
        findings=tuple(stored_finding(each) for each in (*report.findings, *report.accepted)),
        reports=reports,
        checkpoint=report.checkpoint,
        expired_evidence=report.expired_evidence,
    )
