"""A run goes on where the last one ended: each row is read once, and what is open is carried."""

from __future__ import annotations

from dataclasses import replace

import pytest

from outbox.messages.message import Resolution
from spark.audit.late_arrivals import LATE
from spark.run_context import Options, RunContext
from tests.spark.fixtures_markers import REAL_STORES
from tests.spark.fixtures_outbox_writer import OutboxWriter
from tests.spark.fixtures_stored_audit import causes, commit, message_id, run

pytestmark = REAL_STORES


@pytest.mark.deep
def test_a_run_reads_what_is_new_and_judges_again_what_is_open(
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
    assert (first.plan.origin.mode, first.counts.records, first.counts.judged) == ("full", 13, 12)
    assert causes(first) == {"LOST/published": 1, "DUPLICATE/repeated": 1, "ORPHAN/undecided": 1}

    writer.end([phantom], Resolution.ROLLBACK)
    commit(writer, topic, 5)
    writer.publish()
    writer.order_repair(lost)
    writer.order_repair(redriven)
    writer.produce(writer.record(again))
    second = run(parts, options)
    assert second.plan.origin.run_id == first.run_id
    assert (second.counts.records, second.counts.judged) == (8, 5)
    assert causes(second) == {
        "DUPLICATE/repeated": 1,
        "ORPHAN/rolled_back": 1,
        "DUPLICATE/late": 1,
        "DUPLICATE/redriven": 1,
    }
    assert (second.changes.new, second.changes.closed_by_cause) == (2, {"LOST/published": 1})

    whole = run(parts, replace(options, full=True))
    assert (whole.plan.origin.sentence, whole.counts.records) == ("full run: asked for", 21)
    ids = {each.finding_id for each in second.findings}
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
    after_repair = run(parts, options)
    assert (after_repair.plan.origin.mode, causes(after_repair)) == (
        "incremental",
        {"LOST/published": 1},
    )

    writer.produce(writer.record(late, batch=f"{late.shard}.1.0"))
    found = run(parts, options)
    assert found.plan.origin.sentence == f"full run: {LATE}"
    assert causes(found)["ORDER_INVERSION/key"] == 1
    assert causes(found)["LOST/published"] == 0
    (inverted,) = [f for f in found.findings if f.cause.value == "ORDER_INVERSION/key"]
    assert inverted.message_id == str(late.message_id)
