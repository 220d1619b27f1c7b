"""What an earlier run's findings have become, and what a rerun exits with."""

from __future__ import annotations

from outbox.reconciliation import FindingStatus, Partition
from spark.cut import Gap
from spark.report import Report
from spark.rerun import Rerun, became
from spark.verdict import tolerance_of
from tests.unit.spark.reports import make_report

STRICT, LENIENT = tolerance_of("low", {}), tolerance_of("low", {"LOST": 1})
GAP = Gap(partition=Partition("points", 1), reason="offline", finding_class="NOT_READ")


def rerun(*statuses: str, report: Report | None = None) -> Rerun:
    """Return a rerun over lost messages with these statuses."""
    found = tuple(
        FindingStatus(str(n), "LOST", "critical", each) for n, each in enumerate(statuses)
    )
    return Rerun(of="earlier", report=report or make_report(), findings=found)


def test_only_what_was_open_is_told_with_its_status_of_now() -> None:
    before = [
        FindingStatus("a", "LOST", "critical", "open"),
        FindingStatus("b", "LOST", "critical", "fixed"),
    ]
    after = {"a": FindingStatus("a", "SKIPPED", "critical", "open"), "b": before[1]}
    assert became(before, after) == (after["a"],)
    assert became(before, {}) == (before[0],)


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
    assert "1 of 2 findings of earlier are open in 0123456789abcdef" in told.lines()
