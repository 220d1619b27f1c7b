"""What the plans of an audit broadcast does not grow with the messages.

Spark may broadcast nothing by itself here, as with frames that are too large; what is left is what
the code forces, and what a join without an equality needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import pytest
from pyspark.sql import SparkSession

from outbox.messages.message import Resolution
from outbox.messages.record import MESSAGE_ID, Record
from spark.audit.audit import Audit
from spark.columns.frames import Mode
from spark.findings.verdict import Verdict
from spark.report.store_run import store_run
from spark.run_context import Options, RunContext
from tests.spark.fixtures_markers import REAL_STORES
from tests.spark.fixtures_outbox_writer import OutboxWriter

pytestmark = [*REAL_STORES, pytest.mark.deep]

THRESHOLD: Final = "spark.sql.autoBroadcastJoinThreshold"
MESSAGES: Final = 2_000
MOST_ROWS: Final = 200
"""Above the shards, the topics and the few faults; far below the messages."""


@pytest.fixture
def nothing_fits(session: SparkSession) -> Iterator[None]:
    """Let Spark broadcast nothing by its own decision."""
    before = session.conf.get(THRESHOLD)
    session.conf.set(THRESHOLD, "-1")
    yield
    session.conf.set(THRESHOLD, str(before))


@pytest.mark.usefixtures("nothing_fits")
def test_an_audit_broadcasts_no_frame_with_a_row_per_message_commit_or_batch(
    session: SparkSession, writer: OutboxWriter, parts: RunContext, options: Options
) -> None:
    topic = f"{writer.prefix}-points"
    writer.create_topics(topic)
    last = last_execution(session)
    for mode in (Mode.FULL, Mode.TWO_LEVEL):
        halves = writer.prepare(topic, MESSAGES)
        writer.end(halves, Resolution.COMMIT)
        lost, doubled = str(halves[7].message_id), str(halves[8].message_id)

        def altered(record: Record, lost: str = lost, doubled: str = doubled) -> tuple[Record, ...]:
            message_id = dict(record.headers)[MESSAGE_ID].decode()
            return (record,) * (1 - (message_id == lost) + (message_id == doubled))

        writer.publish(altered)
        report = Audit(parts, replace(options, mode=mode, small_rows=0)).run()
        store_run(report, parts.run_store, samples=50)
        assert report.verdict is Verdict.FINDINGS
    broadcast = list(broadcast_rows(session, after=last))
    assert broadcast
    assert [each for each in broadcast if each[0] > MOST_ROWS] == []


def last_execution(session: SparkSession) -> int:
    """Return the number of the newest query."""
    return max((each.executionId() for each in executions(session)), default=-1)


def broadcast_rows(session: SparkSession, after: int) -> Iterator[tuple[int, str]]:
    """Yield the number of rows of each broadcast of the queries since then, and its query."""
    store = store_of(session)
    for each in executions(session):
        if each.executionId() <= after:
            continue
        measured = store.executionMetrics(each.executionId())
        for node in in_java(store.planGraph(each.executionId()).allNodes()):
            if node.name() != "BroadcastExchange":
                continue
            for metric in in_java(node.metrics()):
                rows = measured.get(metric.accumulatorId())
                if metric.name() == "number of output rows" and rows.isDefined():
                    yield int(rows.get().replace(",", "")), each.physicalPlanDescription()


def executions(session: SparkSession) -> list[Any]:
    """Return the queries that Spark remembers."""
    return in_java(store_of(session).executionsList())


def store_of(session: SparkSession) -> Any:
    """Return what Spark keeps of queries for its pages."""
    return session._jsparkSession.sharedState().statusStore()


def in_java(sequence: Any) -> list[Any]:
    """Return the items of a Scala sequence."""
    return [sequence.apply(n) for n in range(sequence.size())]
