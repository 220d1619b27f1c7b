"""A small run, in one partition in memory, reports what a distributed run of both stores reports.

Tests of single steps run them distributed, tests of whole audits as small runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.sql import SparkSession

from outbox.messages.message import Resolution
from spark.audit.audit import Audit
from spark.columns.frames import Mode
from spark.cut.run_size import SMALL_ROWS, SMALL_RUN, sized_run
from spark.findings.topic_rules import LatencyTarget, TopicRule
from spark.report.report import Report
from spark.run_context import Options, RunContext
from tests.spark.audit import test_broadcasts
from tests.spark.audit.faults.fixtures_every_fault import plant
from tests.spark.audit.faults.fixtures_planted_disorder import Plant
from tests.spark.fixtures_markers import REAL_STORES
from tests.spark.fixtures_outbox_writer import OutboxWriter

pytestmark = REAL_STORES

SLOW: Final = TopicRule(latency=LatencyTarget(p99_seconds=60, minutes=3))


def plant_disorder(writer: OutboxWriter) -> object:
    """Write both stores with disorder, wrong places and wrong clocks."""
    return Plant(writer).everything()


@pytest.mark.deep
@pytest.mark.parametrize("fill", [plant, plant_disorder])
def test_a_small_run_reports_what_a_distributed_run_reports(
    writer: OutboxWriter,
    parts: RunContext,
    options: Options,
    fill: Callable[[OutboxWriter], object],
) -> None:
    fill(writer)
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
        "minutes": report.minutes,
        "latencies": report.latencies,
        "log": {**report.log_state, "counted": counted},
        "carried": sorted(report.checkpoint.carried, key=str),
        "positions": report.checkpoint.positions,
    }


@pytest.mark.parametrize("most", [5, pytest.param(4, marks=pytest.mark.deep)])
def test_what_has_more_rows_than_a_small_run_is_staged_on_disk_and_only_that_is_shuffled(
    session: SparkSession,
    writer: OutboxWriter,
    parts: RunContext,
    options: Options,
    tmp_path: Path,
    most: int,
) -> None:
    """Of five commits none is published, so only the commits are too many.

    Spark does not know that a union, or an expansion, of one partition is one.
    """
    topic = f"{writer.prefix}-points"
    writer.create_topics(topic)
    writer.end(writer.prepare(topic, 5), Resolution.COMMIT)
    before = plans(session).keys()
    report = Audit(parts, replace(options, small_rows=most)).run()
    of_run = [plan for number, plan in plans(session).items() if number not in before]
    of_one = [each for each in of_run if "Union" not in each and "Expand" not in each]
    assert any("Exchange" in each for each in of_one) == (most == 4)
    assert (report.counts.in_flight, report.counts.records) == (5, 0)
    assert (tmp_path / "stage" / "segments").exists() == (most == 4)
    assert not (tmp_path / "stage" / "commits").exists()


def plans(session: SparkSession) -> Mapping[int, str]:
    """Return the plans of the queries that Spark remembers, by their numbers."""
    return {
        each.executionId(): each.physicalPlanDescription()
        for each in test_broadcasts.executions(session)
    }


def test_after_a_run_the_session_has_its_usual_settings(session: SparkSession) -> None:
    usual = {name: session.conf.get(name) for name in SMALL_RUN}
    with sized_run(session, SMALL_RUN, "file:///stage", 10) as size:
        assert size.stage_for(10) == "memory:"
        assert {name: session.conf.get(name) for name in SMALL_RUN} == SMALL_RUN
        assert size.stage_for(11) == "file:///stage"
        assert {name: session.conf.get(name) for name in SMALL_RUN} == usual
        size.stage_for(1)
    assert {name: session.conf.get(name) for name in SMALL_RUN} == usual


@pytest.mark.deep
@pytest.mark.parametrize("small_rows", [0, SMALL_ROWS])
def test_a_clean_system_is_clean_either_way(
    writer: OutboxWriter, parts: RunContext, options: Options, small_rows: int
) -> None:
    topic = f"{writer.prefix}-points"
    writer.create_topics(topic)
    writer.end(writer.prepare(topic, 30), Resolution.COMMIT)
    writer.publish()
    given = replace(options, small_rows=small_rows, mode=Mode.TWO_LEVEL)
    report = Audit(parts, given).run()
    assert (report.counts.judged, report.counts.records, report.dirty_ratio) == (30, 30, 0.0)
    assert report.class_counts == {}
