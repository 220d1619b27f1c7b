"""A run judges what is new alone, and reads everything where that concerns what is older."""

from __future__ import annotations

from dataclasses import replace

import pytest

from outbox.messages.message import Resolution
from spark.run_context import Options, RunContext
from tests.spark.fixtures_markers import REAL_STORES
from tests.spark.fixtures_outbox_writer import OutboxWriter
from tests.spark.fixtures_stored_audit import causes, commit, message_id, run

pytestmark = REAL_STORES
OLDER = "full run: a record is of no message that is new"


@pytest.mark.deep
def test_a_run_reads_only_what_is_new_and_keeps_what_is_open(
    writer: OutboxWriter, parts: RunContext, options: Options
) -> None:
    topic = f"{writer.prefix}-points"
    writer.create_topics(topic)
    (phantom,) = writer.prepare(topic, 1, key=b"phantom")
    lost, doubled, again, redriven, *_ = commit(writer, topic, 12)
    copies = {str(lost.message_id): 0, str(doubled.message_id): 2}
    writer.publish(lambda record: (record,) * copies.get(message_id(record), 1))
    writer.produce(writer.record(phantom))

    first = run(parts, options)
    open_before = {"LOST/published": 1, "DUPLICATE/repeated": 1, "ORPHAN/undecided": 1}
    assert (first.plan.origin.mode, first.counts.records, first.counts.judged) == ("full", 13, 12)
    assert causes(first) == open_before

    altered, *_ = commit(writer, topic, 5)
    damaged = str(altered.message_id)
    writer.publish(lambda r: (r._replace(value=b"?") if message_id(r) == damaged else r,))
    second = run(parts, replace(options, small_rows=0))
    assert second.plan.origin.run_id == first.run_id
    assert (second.counts.records, second.counts.judged) == (5, 5)
    assert causes(second) == {**open_before, "ALTERED/value": 1}
    assert (second.changes.new, second.changes.closed_by_cause) == (1, {})

    writer.end([phantom], Resolution.ROLLBACK)
    third = run(parts, options)
    decided = "full run: a message with an open finding was decided, dropped or released"
    assert third.plan.origin.sentence == decided
    assert causes(third)["ORPHAN/rolled_back"] == 1

    writer.order_repair(lost)
    writer.order_repair(redriven)
    writer.produce(writer.record(again))
    fourth = run(parts, options)
    assert (fourth.plan.origin.sentence, fourth.counts.records) == (OLDER, 21)
    assert causes(fourth) == {
        "DUPLICATE/repeated": 2,
        "ORPHAN/rolled_back": 1,
        "ALTERED/value": 1,
        "DUPLICATE/redriven": 1,
    }
    assert fourth.changes.closed_by_cause == {"LOST/published": 1}

    whole = run(parts, replace(options, full=True))
    ids = {each.finding_id for each in fourth.findings}
    assert {each.finding_id for each in whole.findings} == ids


@pytest.mark.deep
def test_a_message_that_came_late_is_judged_beside_all_that_came_before(
    writer: OutboxWriter, parts: RunContext, options: Options
) -> None:
    """Its key's later messages were read by an earlier run; a repair in its place is no matter."""
    topic = f"{writer.prefix}-points"
    writer.create_topics(topic)
    late, repaired = (writer.prepare(topic, 1, key=key)[0] for key in (b"late", b"repaired"))
    writer.end([late, repaired], Resolution.COMMIT)
    for key in (b"late", b"repaired"):
        writer.end(writer.prepare(topic, 1, key=key), Resolution.COMMIT)
    missing = {str(late.message_id), str(repaired.message_id)}
    writer.publish(lambda record: () if message_id(record) in missing else (record,))
    assert causes(run(parts, options)) == {"LOST/published": 2}

    writer.order_repair(repaired)
    assert causes(run(parts, options)) == {"LOST/published": 1}

    writer.produce(writer.record(late, batch=f"{late.shard}.1.0"))
    found = run(parts, options)
    assert found.plan.origin.sentence == OLDER
    assert causes(found)["ORDER_INVERSION/key"] == 1
    assert causes(found)["LOST/published"] == 0
    (inverted,) = [f for f in found.findings if f.cause.value == "ORDER_INVERSION/key"]
    assert inverted.message_id == str(late.message_id)
