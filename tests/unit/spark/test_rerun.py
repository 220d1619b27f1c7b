"""What an earlier run's findings have become, and what a rerun exits with."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from outbox.messages.message_id import HalfId
from outbox.reconciliation.log import Partition
from outbox.reconciliation.stored_run import ChainStep, Changes, FindingStatus, Gone
from spark.cut.cut_plan import Gap
from spark.findings.finding_class import FindingClass, Graded, Severity
from spark.findings.verdict import tolerance_of
from spark.report.report import Report
from spark.rerun import Rerun, became, look_of
from tests.unit.spark.fixtures_reports import NOON, make_finding, make_report

STRICT, LENIENT = tolerance_of("low", {}), tolerance_of("low", {"LOST": 1})
GAP = Gap(partition=Partition("points", 1), reason="offline", finding_class="NOT_READ")


def rerun(*statuses: str, report: Report | None = None) -> Rerun:
    """Return a rerun over lost messages with these statuses."""
    found = tuple(
        FindingStatus(str(n), "LOST", "critical", each) for n, each in enumerate(statuses)
    )
    return Rerun(of="earlier", report=report or make_report(), findings=found)


def test_only_what_was_open_is_told_with_its_status_of_now() -> None:
    before = [FindingStatus("a", "LOST", "critical", "open")]
    after = {
        "a": FindingStatus("a", "SKIPPED", "critical", "open"),
        "b": FindingStatus("b", "LOST", "critical", "fixed"),
    }
    assert became(before, after) == (after["a"],)
    assert became(before, {}) == (before[0],)


def test_it_stores_all_that_was_seen_of_the_asked_findings_and_where_it_began() -> None:
    accepted = make_finding(1)
    report = make_report(
        [make_finding(0)],
        accepted=[accepted],
        gone=Gone(half_ids=[HalfId(7)]),
        step=ChainStep(after="before", cut=None),
    )
    look = look_of(report, ["a"])
    assert (look.after, look.finding_ids, look.complete) == ("before", ["a"], True)
    assert {each.half_id for each in look.seen} == {HalfId(0), HalfId(1)}
    assert look.gone.half_ids == [HalfId(7)]
    assert not look_of(make_report(gaps=[GAP]), []).complete


def test_it_exits_by_what_is_still_open() -> None:
    assert rerun("fixed", "resolved").exit_code(STRICT) == 0
    assert rerun("fixed", "open").exit_code(STRICT) == 7
    assert rerun("fixed", "open").exit_code(LENIENT) == 0
    assert rerun().exit_code(STRICT) == 0


def test_what_was_not_read_whole_is_never_called_gone() -> None:
    partial = make_report(gaps=[GAP])
    assert rerun("fixed", report=partial).exit_code(STRICT) == 8
    assert rerun("open", report=partial).exit_code(STRICT) == 7
    assert rerun("fixed", "unverifiable").exit_code(STRICT) == 8
    assert rerun("open", "unverifiable").exit_code(STRICT) == 7


def test_it_tells_each_finding_and_how_many_are_open() -> None:
    told = rerun("fixed", "open")
    assert told.document()["open"] == 1
    assert told.document()["findings"][0] == {"finding_id": "0", "class": "LOST", "status": "fixed"}
    assert f"1 of 2 findings of earlier are open at the cut of {NOON.isoformat()}" in told.lines()
    assert (told.document()["new"], "others" in told.lines()) == (0, False)


def test_what_it_sees_besides_is_counted_and_left_to_a_run() -> None:
    report = make_report([make_finding(0)], changes=Changes(new=3, resolved=0))
    told = rerun("open", report=report)
    assert (told.document()["open"], told.document()["new"]) == (1, 3)
    assert told.lines().endswith("3 others were seen: outbox reconcile run tells them\n")
    too_many = Counter({(Graded(FindingClass.LOST, Severity.CRITICAL), "points"): 5})
    assert rerun("open", report=replace(report, class_counts=too_many)).new == 7
