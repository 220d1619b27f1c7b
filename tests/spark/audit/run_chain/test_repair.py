"""Messages that are published again: the next run calls them fixed, and finds nothing worse."""

from __future__ import annotations

from collections.abc import Iterable

import psycopg
import pytest

from outbox.messages.message import DecidedBy, Resolution
from outbox.messages.message_id import HalfId
from outbox.messages.record import Record
from outbox.reconciliation.finding import FindingChanges
from spark.audit.audit import Audit
from spark.findings.verdict import Verdict
from spark.report.report import Report
from spark.report.store_run import store_run
from spark.run_context import Options, RunContext
from tests.fixtures_records import render
from tests.spark.fixtures_markers import REAL_STORES
from tests.spark.fixtures_outbox_writer import OutboxWriter
from tests.spark.fixtures_stored_audit import commit, run

pytestmark = REAL_STORES


@pytest.mark.deep
def test_the_run_after_a_repair_is_clean_and_marks_the_finding_fixed(
    writer: OutboxWriter, parts: RunContext, options: Options
) -> None:
    topic = f"{writer.prefix}-points"
    writer.create_topics(topic)
    halves = writer.prepare(topic, 6)
    writer.end(halves, Resolution.COMMIT)
    lost, altered = halves[2:4]

    def damage(record: Record) -> Iterable[Record]:
        if record.key == lost.message.key:
            return ()
        bad = record.key == altered.message.key
        return (record._replace(value=b"damaged") if bad else record,)

    writer.publish(damage)
    first = Audit(parts, options).run()
    store_run(first, parts.run_store, samples=50)
    assert {each.half_id: each.cause.value for each in first.findings} == {
        lost.half_id: "LOST/published",
        altered.half_id: "ALTERED/value",
    }

    for half in (lost, altered):
        writer.execute(
            "INSERT INTO outbox.held_record (half_id, nonce, shard, topic_id, xid, n,"
            " publish_error, repair, released_at)"
            " VALUES (%s, %s, %s, %s, 1, 1, '', 'action', clock_timestamp())",
            *(half.half_id, half.nonce, half.shard, half.message.topic_id),
        )
        writer.repair(half, "action")
    second = Audit(parts, options).run()
    store_run(second, parts.run_store, samples=50)

    assert second.verdict is Verdict.CLEAN
    found = [(each.cause.value, each.half_id) for each in second.findings]
    assert found == [("DUPLICATE/redriven", altered.half_id)]
    assert second.changes == FindingChanges(new=1, resolved=0, fixed=2)
    assert second.changes.closed_by_cause == {"LOST/published": 1, "ALTERED/value": 1}
    assert second.previous is not None
    assert (second.previous.run_id, second.previous.open_findings) == (first.run_id, 2)
    with psycopg.connect(writer.database_url) as connection:
        rows = connection.execute(
            "SELECT class || '/' || detail, status FROM outbox.reconciliation_finding"
            " WHERE topic = %s",
            (topic,),
        )
        assert set(rows) == {
            ("LOST/published", "fixed"),
            ("ALTERED/value", "fixed"),
            ("DUPLICATE/redriven", "open"),
        }


@pytest.mark.deep
def test_a_repair_explains_one_record_and_neither_a_copy_of_it_nor_a_later_one(
    writer: OutboxWriter, parts: RunContext, options: Options
) -> None:
    """The later one is published again after a run has matched the repair."""
    topic = f"{writer.prefix}-points"
    writer.create_topics(topic)
    copied, again, _ = commit(writer, topic, 3)
    lost = {copied.message.key, again.message.key}
    writer.publish(lambda record: () if record.key in lost else (record,))
    writer.order_repair(copied)
    batch = f"{copied.shard}.{writer.shards[copied.shard].batch_no}.0"
    writer.produce(render(copied, DecidedBy.PRODUCER, batch, redriven="action"))
    writer.order_repair(again)
    matched = run(parts, options)
    writer.repair(again, "action")
    found = {("DUPLICATE/repeated", copied.half_id)}
    assert found_in(matched) == found
    assert found_in(run(parts, options)) == found | {("DUPLICATE/repeated", again.half_id)}


def found_in(report: Report) -> set[tuple[str, HalfId | None]]:
    """Return the cause and the message of each finding."""
    return {(each.cause.value, each.half_id) for each in report.findings}
