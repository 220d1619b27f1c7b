"""The end of a run on a terminal names the worst findings and the commands that go on."""

from __future__ import annotations

from typing import Any

import pytest

from spark.__main__ import main
from spark.findings.finding_class import FindingClass
from spark.report.run_summary import summary
from tests.unit.spark.fixtures_reports import make_finding, make_report


def test_a_clean_run_names_no_command() -> None:
    assert "outbox " not in summary(make_report())


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


@pytest.mark.parametrize(
    ("finding_class", "fields", "subject"),
    [
        (FindingClass.MANIFEST_BREAK, {"shard": 3}, "shard 3"),
        (FindingClass.CHECK_SILENT, {"shard": None, "producer_group": "billing"}, "group billing"),
        (FindingClass.XMIN_STALLED, {"shard": None}, "-"),
    ],
)
def test_a_finding_without_a_message_or_a_topic_names_its_shard_or_its_group(
    finding_class: FindingClass, fields: dict[str, Any], subject: str
) -> None:
    found = make_finding(finding_class=finding_class, message_id=None, topic=None, **fields)
    report = make_report([found])
    assert f" {finding_class} {subject}: outbox " in summary(report)


def test_only_findings_of_the_requested_topics_and_of_none_are_named() -> None:
    others = [make_finding(n, topic="other") for n in range(1, 6)]
    shard = make_finding(9, topic=None)
    lines = summary(make_report([*others, make_finding(7), shard]), ["points"]).splitlines()
    named = [line.split()[2].strip(":") for line in lines if line.startswith("critical")]
    assert named == [make_finding(7).message_id, shard.message_id]
    assert not [line for line in lines if " more: " in line]
    assert lines[-2].startswith("totals: missing 7,")


@pytest.mark.parametrize("command", ["run", "rerun"])
def test_the_help_of_the_program_has_an_example(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    assert f"Example: outbox reconcile {command} " in " ".join(capsys.readouterr().out.split())
