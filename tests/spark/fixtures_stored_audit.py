"""An audit that is run and stored, and what it has found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from outbox.messages.message import HalfMessage, Resolution
from outbox.messages.record import MESSAGE_ID, Record
from spark.audit.audit import Audit
from spark.report.report import Report
from spark.report.store_run import store_run
from spark.run_context import Options, RunContext
from tests.fixtures_records import header_in
from tests.spark.fixtures_outbox_writer import OutboxWriter


def run(parts: RunContext, options: Options) -> Report:
    """Run and store the outcome."""
    report = Audit(parts, options).run()
    store_run(report, parts.run_store, samples=50)
    return report


def causes(report: Report) -> Counter[str]:
    """Count the findings by cause."""
    return Counter(each.cause.value for each in report.findings)


def cause_in(row: Mapping[str, Any]) -> str:
    """Return the cause of a finding as JSON or a table has it."""
    return f"{row['class']}/{row['detail']}"


def commit(writer: OutboxWriter, topic: str, count: int) -> list[HalfMessage]:
    """Prepare and commit messages."""
    halves = writer.prepare(topic, count)
    writer.end(halves, Resolution.COMMIT)
    return halves


def hold(writer: OutboxWriter, held: Iterable[HalfMessage]) -> None:
    """Record that Kafka refuses these messages."""
    for half in held:
        writer.execute(
            "INSERT INTO outbox.held_record"
            " (half_id, nonce, shard, topic_id, xid, n, publish_error)"
            " VALUES (%s, %s, %s, %s, 1, 1, 'too large')",
            *(half.half_id, half.nonce, half.shard, half.message.topic_id),
        )


def record_place(writer: OutboxWriter, half: HalfMessage, partition: int, offset: int) -> None:
    """Record a place for a message, as the relay does when Kafka has answered."""
    state = writer.shards[half.shard]
    writer.execute(
        "INSERT INTO outbox.publication_log (shard, to_xid, to_n, batch_no, from_xid, from_n,"
        " published_at, half_ids, partitions, offsets)"
        " VALUES (%s, %s, %s, %s, 0, 0, clock_timestamp(), %s, %s, %s)",
        *(half.shard, *state.position, state.batch_no, [half.half_id], [partition], [offset]),
    )


def note_progress(writer: OutboxWriter, shard: int) -> str:
    """Write the row of a shard's relay, as it does once a second; return its next batch header."""
    state = writer.shards[shard]
    writer.execute(
        "INSERT INTO outbox.progress (name, position, position_n, batch_no, manifest_offset)"
        " VALUES (%s, %s, %s, %s, 0)",
        *(f"relay:{shard}", *state.position, state.batch_no),
    )
    return f"{shard}.{state.batch_no + 1}.0"


def message_id(record: Record) -> str:
    """Return the message id of a record."""
    return header_in(record, MESSAGE_ID)
