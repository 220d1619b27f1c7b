"""What an earlier run's findings have become, and what a rerun exits with."""

from __future__ import annotations

from dataclasses import replace

from outbox.reconciliation.finding import StoredFinding
from outbox.reconciliation.log import Partition
from spark.audit.rerun import Rerun, later_statuses
from spark.cut.cut_plan import Gap
from spark.findings.stored_finding import stored_finding
from spark.findings.verdict import parse_tolerance
from spark.report.report import Report
from tests.unit.spark.fixtures_reports import NOON, make_finding, make_report

STRICT, LENIENT = parse_tolerance("low", {}), parse_tolerance("low", {"LOST/published": 1})
GAP = Gap(partition=Partition("points", 1), reason="offline", cause="UNVERIFIABLE/not_read")


def finding(finding_id: str, status: str = "open") -> StoredFinding:
    """Return a lost message with this status."""
    return replace(stored_finding(make_finding()), finding_id=finding_id, status=status)


def rerun(*statuses: str, report: Report | None = None) -> Rerun:
    """Return a rerun over lost messages with these statuses."""
    found = tuple(finding(str(n), status=each) for n, each in enumerate(statuses))
    return Rerun(of="earlier", report=report or make_report(), findings=found)


def test_only_open_findings_are_shown_with_their_present_status() -> None:
    before = [finding("a")]
    after = {"a": replace(before[0], detail="skipped"), "b": finding("b", status="fixed")}
    assert later_statuses(before, after) == (after["a"],)
    assert later_statuses(before, {}) == (before[0],)


def test_it_exits_by_what_is_still_open() -> None:
    assert rerun("fixed", "resolved").exit_code(STRICT) == 0
    assert rerun("fixed", "open").exit_code(STRICT) == 7
    assert rerun("fixed", "open").exit_code(LENIENT) == 0
    assert rerun().exit_code(STRICT) == 0


def test_after_a_partial_read_no_finding_is_resolved() -> None:
    partial = make_report(gaps=[GAP])
    assert rerun("fixed", report=partial).exit_code(STRICT) == 8
    assert rerun("open", report=partial).exit_code(STRICT) == 7
    assert rerun("fixed", "unverifiable").exit_code(STRICT) == 8
    assert rerun("open", "unverifiable").exit_code(STRICT) == 7


def test_it_shows_each_finding_and_how_many_are_open() -> None:
    shown = rerun("fixed", "open")
    assert shown.document()["open"] == 1
    assert shown.document()["findings"][0] == {
        "finding_id": "0",
        "class": "LOST",
        "detail": "published",
        "status": "fixed",
    }
    assert f"1 of 2 findings of earlier are open at the cut of {NOON.isoformat()}" in shown.lines()
    assert (shown.document()["new"], "others" in shown.lines()) == (0, False)
