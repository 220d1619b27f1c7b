"""The end of a run on a terminal names the worst causes and the commands that go on."""

from __future__ import annotations

from datetime import timedelta

from spark.findings.finding_class import Cause
from spark.report.run_summary import summary
from tests.unit.spark.fixtures_reports import NOON, make_finding, make_report


def test_the_worst_causes_come_first_each_with_its_command() -> None:
    late = [make_finding(n, cause=Cause.UNPUBLISHED_HELD) for n in range(1, 4)]
    twice = make_finding(5, cause=Cause.DUPLICATE_REPEATED)
    lost = make_finding(9)
    at = (NOON, NOON + timedelta(seconds=2))
    report = make_report([*late, lost, twice], spans={lost.graded: at})
    lines = summary(report).splitlines()
    again = f"outbox reconcile fix {report.run_id} --class LOST/published"
    period = "2026-01-01T12:00:03Z – 2026-01-01T12:00:05Z"
    assert lines[1] == "full run: the first run; took 12.5 s"
    assert lines[3] == f"critical LOST/published 1, {period}: {again}"
    assert lines[4].startswith("high DUPLICATE/repeated 1: ")
    assert lines[5] == "medium UNPUBLISHED/held 3: outbox held list"
    assert [line.split(":")[0] for line in lines[-3:]] == ["verdict", "totals", "report"]
