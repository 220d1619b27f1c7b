"""A fault that a run has found in its sample is looked at again by a run with another sample."""

from __future__ import annotations

from dataclasses import replace

import pytest

from outbox.messages.message import Resolution
from spark.checks.sample import MESSAGES
from spark.run_context import Options, RunContext
from tests.spark.fixtures_markers import REAL_STORES
from tests.spark.fixtures_outbox_writer import OutboxWriter
from tests.spark.fixtures_stored_audit import causes, commit, record_place, run

pytestmark = [*REAL_STORES, pytest.mark.deep]

MISPLACED = 20


def test_a_full_run_closes_no_finding_that_is_outside_its_sample(
    writer: OutboxWriter, parts: RunContext, options: Options
) -> None:
    topic = f"{writer.prefix}-points"
    writer.create_topics(topic)
    halves = writer.prepare(topic, MISPLACED, partition=0)
    writer.end(halves, Resolution.COMMIT)
    writer.publish(lambda record: (record._replace(partition=1),))
    (altered,) = commit(writer, topic, 1)
    writer.publish()
    write = "UPDATE outbox.half_message SET value = %s WHERE half_id = %s"
    writer.execute(write, b"altered", altered.half_id)
    found = {"WRONG_PLACE/partition": MISPLACED, "INCONSISTENT/row": 1}
    assert causes(run(parts, options)) == found
    for _ in range(2):
        commit(writer, topic, MESSAGES)
    writer.publish()
    whole = run(parts, replace(options, full=True))
    assert (causes(whole), whole.changes.resolved) == (found, 0)
    writer.execute(write, altered.message.value, altered.half_id)
    repaired = run(parts, replace(options, full=True))
    assert causes(repaired) == {"WRONG_PLACE/partition": MISPLACED}


def test_a_wrong_recorded_place_stays_open_when_no_run_can_look_at_it_any_more(
    writer: OutboxWriter, parts: RunContext, options: Options
) -> None:
    """Its manifest has expired, so its message is not judged: that is no evidence."""
    topic = f"{writer.prefix}-points"
    writer.create_topics(topic)
    (half,) = commit(writer, topic, 1)
    writer.publish()
    record_place(writer, half, 1, 7)
    assert causes(run(parts, options)) == {"WRONG_OFFSET/recorded": 1}
    writer.end(writer.prepare(topic, 1, key=half.message.key), Resolution.COMMIT)
    writer.publish()
    writer.expire_manifests(half.shard, 1)
    later = run(parts, replace(options, full=True))
    assert (later.counts.baseline, later.changes.resolved) == (1, 0)
    assert causes(later) == {"WRONG_OFFSET/recorded": 1}
