"""The files that a run writes, and what all formats of a report have in common."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any, cast

import jsonschema  # type: ignore[import-untyped]
import pytest

from outbox.postgres.reconciliation.run_store import PostgresRunStore
from outbox.reconciliation.finding import FindingChanges
from outbox.reconciliation.run import StoredRun
from spark.columns.parquet_folder import ParquetFolder
from spark.findings.finding import Finding
from spark.findings.finding_class import Cause
from spark.report.report import Report
from spark.report.store_run import store_run
from tests.unit.docs.fixtures_report_schema import SCHEMA
from tests.unit.spark.fixtures_reports import make_finding, make_report
from tests.unit.spark.report.fixtures_tags import HOSTILE, Tags

SECRET = "value-that-must-not-be-shown"
SAMPLES = 50
TEXT = HOSTILE.replace("\udcff", "")


@dataclass
class Kept:
    """Keeps what a run would store."""

    runs: list[StoredRun] = field(default_factory=list)

    def save(self, run: StoredRun) -> None:
        """Keep the run."""
        self.runs.append(run)


def published(report: Report) -> tuple[dict[str, Any], StoredRun]:
    """Store a report; return its JSON and the stored run."""
    kept = Kept()
    ParquetFolder.emptied(report.folder / "findings")  # the ledger writes it
    shown = store_run(report, cast("PostgresRunStore", kept), SAMPLES)
    return shown, kept.runs[0]


def hostile_finding(number: int, **fields: Any) -> Finding:
    """Return a finding with hostile texts, and with a key that must not be shown."""
    hostile = {"topic": f"{TEXT}{number}", "producer_group": TEXT, "key": TEXT.encode()}
    return make_finding(number, **{**hostile, "key_hash": number, **fields})


@pytest.mark.parametrize("count", [0, 1, 50, 51])
def test_all_forms_agree_on_what_was_found_and_none_shows_a_key_or_can_do_harm(
    count: int, tmp_path: Path
) -> None:
    findings = [hostile_finding(n, key=SECRET.encode(), topic="points") for n in range(count)]
    if count:
        findings[-1] = hostile_finding(count, cause=Cause.DUPLICATE_REPEATED)
    shown, run = published(make_report(findings, folder=tmp_path / "run"))
    jsonschema.validate(json.loads(json.dumps(shown)), SCHEMA)
    assert json.loads(run.reports["json"]) == json.loads(json.dumps(shown))
    verdict = "findings" if count else "clean"
    assert (shown["verdict"], run.row["verdict"], len(run.findings)) == (verdict, verdict, count)
    assert sum(shown["totals"].values()) == len(shown["findings"]) == count
    files = {path for name, path in shown["report"].items() if name != "parquet"}
    assert files == {str(each) for each in (tmp_path / "run").iterdir()}
    page, rows = run.reports["html"], list(csv.reader(StringIO(run.reports["csv"])))
    assert Tags(page).tags.count("details") == count
    assert ("&lt;script&gt;" in page) is bool(count)
    assert not {"script", "img", "link", "iframe"} & set(Tags(page).tags)
    assert 'href="' not in page.replace('href="#', "")
    assert len(rows) == count + 1
    assert not [cell for row in rows for cell in row if cell.startswith(("=", "+", "-", "@"))]
    for body in run.reports.values():
        assert run.row["sentence"] in body or body is run.reports["csv"]
        assert SECRET not in body


def test_a_report_counts_new_resolved_and_fixed_findings(tmp_path: Path) -> None:
    changes = FindingChanges(
        new=1, resolved=3, fixed=2, unverifiable=4, closed_by_cause={"LOST/published": 5}
    )
    shown, run = published(make_report([make_finding()], changes=changes, folder=tmp_path / "r"))
    assert (shown["new"], shown["resolved"], shown["fixed"]) == (1, 3, 2)
    assert shown["unverifiable"] == 4
    assert "1 new, 3 resolved, 2 fixed by a repair, 4 unverifiable" in run.reports["html"]
