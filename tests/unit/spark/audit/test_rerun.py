"""What an earlier run's findings have become, and what a rerun exits with."""

from __future__ import annotations

from outbox.messages.message_id import HalfId
from outbox.reconciliation.checkpoint import CheckpointUpdate
from outbox.reconciliation.finding import FindingOutcome
from outbox.reconciliation.log import Partition
from outbox.reconciliation.run import ExpiredEvidence
from spark.audit.rerun import Rerun, later_statuses, rerun_result
from spark.cut.cut_plan import Gap
from spark.findings.verdict import parse_tolerance
from spark.report.report import Report
from tests.unit.spark.fixtures_reports import NOON, make_finding, make_report

STRICT, LENIENT = parse_tolerance("low", {}), parse_tolerance("low", {"LOST": 1})
GAP = Gap(partition=Partition("points", 1), reason="offline", finding_class="NOT_READ")


def rerun(*statuses: str, report: Report | None = None) -> Rerun:
    """Return a rerun over lost messages with these statuses."""
    found = tuple(
        FindingOutcome(str(n), "LOST", "critical", each) for n, each in enumerate(statuses)
    )
    return Rerun(of="earlier", report=report or make_report(), findings=found)


def test_only_open_findings_are_shown_with_their_present_status() -> None:
    before = [FindingOutcome("a", "LOST", "critical", "open")]
    after = {
        "a": FindingOutcome("a", "SKIPPED", "critical", "open"),
        "b": FindingOutcome("b", "LOST", "critical", "fixed"),
    }
    assert later_statuses(before, after) == (after["a"],)
    assert later_statuses(before, {}) == (before[0],)


def test_it_stores_the_requested_findings_and_the_run_where_it_began() -> None:
    accepted = make_finding(1)
    report = make_report(
        [make_finding(0)],
        accepted=[accepted],
        expired_evidence=ExpiredEvidence(half_ids=[HalfId(7)]),
        checkpoint=CheckpointUpdate(after="before", cut=None),
    )
    look = rerun_result(report, ["a"])
    assert (look.after, look.finding_ids, look.complete) == ("before", ["a"], True)
    assert {each.half_id for each in look.seen} == {HalfId(0), HalfId(1)}
    assert look.expired_evidence.half_ids == [HalfId(7)]
    assert not rerun_result(make_report(gaps=[GAP]), []).complete


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
        "status": "fixed",
    }
    assert f"1 of 2 findings of earlier are open at the cut of {NOON.isoformat()}" in shown.lines()
    assert (shown.document()["new"], "others" in shown.lines()) == (0, False)
