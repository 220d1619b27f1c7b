"""A lost message that is published again: the next run calls it fixed, and finds nothing else."""

from __future__ import annotations

import psycopg

from outbox.message import Resolution
from outbox.reconciliation import Changes
from spark.publish import publish
from spark.run import Options, Parts, run_once
from spark.verdict import Verdict
from tests.spark.marks import REAL_STORES
from tests.spark.outbox_writer import OutboxWriter

pytestmark = REAL_STORES


def test_the_run_after_a_repair_is_clean_and_marks_the_finding_fixed(
    writer: OutboxWriter, parts: Parts, options: Options
) -> None:
    topic = f"{writer.prefix}-points"
    writer.create_topics(topic)
    halves = writer.prepare(topic, 6)
    writer.end(halves, Resolution.COMMIT)
    lost = halves[2]
    writer.publish(lambda record: () if record.key == lost.message.content.key else (record,))
    first = run_once(parts, options)
    publish(first, parts.run_store, samples=50)
    assert [each.half_id for each in first.findings] == [lost.half_id]

    writer.execute(
        "INSERT INTO outbox.held_record (half_id, nonce, shard, topic_id, xid, n, publish_error,"
        " repair, released_at) VALUES (%s, %s, %s, %s, 1, 1, '', 'action', clock_timestamp())",
        *(lost.half_id, lost.nonce, lost.shard, lost.message.topic_id),
    )
    writer.repair(lost, "action")
    second = run_once(parts, options)
    publish(second, parts.run_store, samples=50)

    assert (second.verdict, second.findings) == (Verdict.CLEAN, ())
    assert second.changes == Changes(new=0, resolved=0, fixed=1)
    assert second.changes.closed == {"LOST": 1}
    assert [(run.run_id, run.open) for run in second.past] == [(first.run_id, 1)]
    (of_topic,) = [each for each in second.latencies if each.topic is not None]
    assert (of_topic.topic, of_topic.messages) == (topic, 1)
    assert 0 < of_topic.p50 <= of_topic.p95 <= of_topic.p99 < 600
    assert sum(each.messages for each in second.latencies if each.minute is not None) == 1
    with psycopg.connect(writer.database_url) as connection:
        rows = connection.execute("SELECT status FROM outbox.reconciliation_finding").fetchall()
    assert rows == [("fixed",)]
