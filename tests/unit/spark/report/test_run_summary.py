"""The end of a run on a terminal names the worst findings and the commands that go on."""

from __future__ import annotations

from spark.findings.finding_class import FindingClass
from spark.report.run_summary import summary
from tests.unit.spark.fixtures_reports import make_finding, make_report


def test_the_worst_findings_come_first_each_with_its_command() -> None:
    late = [make_finding(n, finding_class=FindingClass.HELD) for n in range(1, 4)]
    lost = make_finding(9)
    report = make_report([*late, lost])
    lines = summary(report).splitlines()
    named = lines[3:6]
    again = f"outbox reconcile fix {report.run_id} --class LOST"
    assert named[0] == f"critical LOST {lost.message_id}: {again}"
    assert [line.split()[1] for line in named[1:]] == ["HELD", "HELD"]
    assert all(line.endswith(": outbox held list") for line in named[1:])
    assert lines[6] == f"1 more: outbox reconcile show {report.run_id}"
    assert [line.split(":")[0] for line in lines[-3:]] == ["verdict", "totals", "report"]
