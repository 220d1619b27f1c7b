"""A misplaced key is found by the run that reads its record, and stays found."""

from __future__ import annotations

from typing import Any

import pytest

from outbox.messages.message import Resolution
from outbox.messages.record import Record
from spark.checks.misplaced_keys import keyed_topics
from spark.even.murmur2 import home_of
from spark.findings.topic_rules import topic_rules
from spark.report.report import Report
from spark.run_context import Options, RunContext
from tests.spark.fixtures_markers import REAL_STORES
from tests.spark.fixtures_outbox_writer import OutboxWriter
from tests.spark.fixtures_stored_audit import run

pytestmark = [*REAL_STORES, pytest.mark.deep]

LAST = 1
"""The last partition: once a shard has published there, its relay knows that there are two."""


def test_each_run_finds_the_misplaced_records_that_it_reads_and_adds_them_up(
    writer: OutboxWriter, parts: RunContext, options: Options
) -> None:
    topic = f"{writer.prefix}-points"
    writer.create_topics(topic)
    known: list[tuple[int, int]] = []
    for _ in range(2):
        for partition in (LAST, None, None):
            halves = writer.prepare(topic, 1, key=b"moved", partition=partition)
            writer.end(halves, Resolution.COMMIT)
        writer.publish(lambda record: (elsewhere(record),))
        report = run(parts, options)
        evidence = found(report)
        known.append((evidence["records"], evidence["keys"]))
        assert report.plan.origin.mode == ("incremental" if len(known) == 2 else "full")
    assert known == [(2, 1), (4, 1)]


def elsewhere(record: Record) -> Record:
    """Send a record to the other one of two partitions, unless one was asked for."""
    if record.partition is not None:
        return record
    return record._replace(partition=1 - home_of(record.key or b"") % 2)


def found(report: Report) -> Any:
    """Return the evidence of the one finding."""
    (finding,) = report.findings
    assert finding.cause.value == "WRONG_PLACE/partition"
    return finding.evidence


def test_a_topic_whose_keys_may_be_anywhere_is_not_judged() -> None:
    rules = topic_rules({"any": {"partitioner": "any"}})
    assert keyed_topics({"any-1": 3, "points": 2}, rules) == {"points": 2}
