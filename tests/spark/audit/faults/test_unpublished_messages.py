"""Messages without a record that nothing but their hold, or the operator's choice, explains."""

from __future__ import annotations

from dataclasses import replace

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
)

from outbox.messages.message import HalfMessage, Resolution
from spark.findings.verdict import Verdict
from spark.run_context import Options, RunContext
from tests.spark.fixtures_markers import REAL_STORES
from tests.spark.fixtures_outbox_writer import OutboxWriter
from tests.spark.fixtures_stored_audit import (
    causes,
    commit,
    hold,
    run,
)

pytestmark = [*REAL_STORES, pytest.mark.deep]


def test_a_held_message_is_lost_if_the_batch_that_is_stored_as_its_release_does_not_list_it(
    writer: OutboxWriter, parts: RunContext, options: Options
) -> None:
    topic = f"{writer.prefix}-points"
    writer.create_topics(topic)
    held, later, _ = commit(writer, topic, 3)
    writer.publish(held=[held.half_id, later.half_id])
    hold(writer, [held, later])
    assert causes(run(parts, options)) == {"UNPUBLISHED/held": 2}

    mark_released(writer, held, writer.shards[held.shard].batch_no)
    mark_released(writer, later, writer.shards[later.shard].batch_no + 1)
    for full in (False, True):
        forgotten = run(parts, replace(options, full=full))
        assert [(f.cause.value, f.message_id) for f in forgotten.findings] == [
            ("LOST/published", str(held.message_id))
        ]
        assert forgotten.verdict is Verdict.FINDINGS

    writer.release(later)
    writer.release(held)
    found = run(parts, options)
    assert (causes(found), found.changes.resolved) == ({}, 1)


def test_in_a_compacted_topic_the_last_message_of_each_key_is_judged(
    writer: OutboxWriter, parts: RunContext, options: Options
) -> None:
    """A tombstone may be gone as well, but not if an older record of its key is still there."""
    topic = f"{writer.prefix}-points"
    writer.create_topics(topic)
    compact(writer, topic)

    def publish(key: bytes, value: bytes | None, *, lost: bool = False) -> str:
        (half,) = writer.prepare(topic, 1, key=key, value=value)
        writer.end([half], Resolution.COMMIT)
        writer.publish(lambda record: () if lost else (record,))
        return str(half.message_id)

    publish(b"kept", b"1")
    expected = {
        ("LOST/published", publish(b"kept", None, lost=True)),
        ("UNVERIFIABLE/compacted", publish(b"value", b"1", lost=True)),
        ("LOST/published", publish(b"value", b"2", lost=True)),
        ("UNVERIFIABLE/compacted", publish(b"gone", b"1", lost=True)),
        ("UNVERIFIABLE/compacted", publish(b"gone", None, lost=True)),
        ("UNVERIFIABLE/compacted", publish(b"later", b"1", lost=True)),
    }
    publish(b"later", b"2")
    report = run(parts, options)
    assert {(f.cause.value, f.message_id) for f in report.findings} == expected


def mark_released(writer: OutboxWriter, half: HalfMessage, batch_no: int) -> None:
    """Store that a batch has published a held message."""
    writer.execute(
        "UPDATE outbox.held_record SET released_at = clock_timestamp(), release_batch_no = %s"
        " WHERE half_id = %s",
        *(batch_no, half.half_id),
    )


def compact(writer: OutboxWriter, topic: str) -> None:
    """Let the topic keep only the last record of a key."""
    entry = ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": writer.bootstrap_servers})
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(30)
