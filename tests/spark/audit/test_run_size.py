"""A small run, in one partition in memory, reports what a distributed run of both stores reports.

Tests of single steps run them distributed, tests of whole audits as small runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import pytest

from spark.audit.audit import Audit
from spark.columns.frames import Mode
from spark.findings.topic_rules import LatencyTarget, TopicRule
from spark.report.report import Report
from spark.run_context import Options, RunContext
from tests.spark.audit.faults.fixtures_planted_disorder import Plant
from tests.spark.fixtures_markers import REAL_STORES
from tests.spark.fixtures_outbox_writer import OutboxWriter

pytestmark = REAL_STORES

SLOW: Final = TopicRule(latency=LatencyTarget(p99_seconds=60, minutes=3))


@pytest.mark.deep
def test_a_small_run_reports_what_a_distributed_run_reports(
    writer: OutboxWriter, parts: RunContext, options: Options
) -> None:
    """Both stores have disorder, wrong places and wrong clocks."""
    Plant(writer).everything()
    small = replace(options, topic_rules={f"{writer.prefix}-slow": SLOW})
    distributed = replace(small, small_rows=0, mode=Mode.TWO_LEVEL)
    found = [shown(Audit(parts, each).run()) for each in (small, distributed)]
    assert len(found[0]["findings"]) > 5
    assert found[0] == found[1]


def shown(report: Report) -> Mapping[str, Any]:
    """Return all that a run reports and leaves; two runs of one state agree in it.

    Each counts the partitions of a topic for the first time, and notes when.
    """
    assert report.checkpoint is not None
    counted = {name: {**each, "since": None} for name, each in report.log_state["counted"].items()}
    return {
        "findings": sorted((each.as_json() for each in report.findings), key=str),
        "counts": report.counts,
        "classes": report.class_counts,
        "read": report.read,
        "latencies": report.latencies,
        "log": {**report.log_state, "counted": counted},
        "carried": sorted(report.checkpoint.carried, key=str),
        "positions": report.checkpoint.positions,
    }
