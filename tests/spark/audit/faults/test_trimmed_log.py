"""Faults in a topic whose log no longer begins at offset 0, as every topic after its retention.

Retention explains that a published record is gone. It explains nothing that was never published,
and nothing that an earlier run had already missed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from outbox.messages.message import HalfMessage, Resolution
from outbox.messages.record import MESSAGE_ID, Record
from spark.findings.verdict import EXIT_FINDINGS, Tolerance, Verdict, exit_code
from spark.report.report import Report
from spark.run_context import Options, RunContext
from tests.fixtures_records import header_in
from tests.spark.fixtures_markers import REAL_STORES
from tests.spark.fixtures_outbox_writer import OutboxWriter
from tests.spark.fixtures_stored_audit import commit, hold, record_place, run

pytestmark = [*REAL_STORES, pytest.mark.deep]

RELAY_ROW = (
    "INSERT INTO outbox.progress"
    " (name, position, position_n, manifest_offset, batch_no, crc, gen)"
    " VALUES (%s, %s, %s, 0, %s, %s, 1)"
)
TO_THE_END = -1
"""The log then begins where it ends."""
FAULTS = (
    "LOST/skipped",
    "LOST/skipped",
    "LOST/skipped",
    "UNPUBLISHED/held",
    "UNPUBLISHED/given_up",
    "LOST/published",
)


def without(*halves: HalfMessage) -> Callable[[Record], tuple[Record, ...]]:
    """Return what publishes every record but those of these messages."""
    lost = {str(half.message_id) for half in halves}
    return lambda r: () if header_in(r, MESSAGE_ID) in lost else (r,)


def plant(writer: OutboxWriter, halves: Sequence[HalfMessage]) -> set[tuple[str, str]]:
    """Publish all but the first messages, each of which has a fault; return those faults."""
    faulty = list(zip(FAULTS, halves, strict=False))
    of = defaultdict(list)
    for name, half in faulty:
        of[name].append(half)
    held = [*of["UNPUBLISHED/held"], *of["UNPUBLISHED/given_up"]]
    writer.publish(
        without(*of["LOST/published"]),
        held=[each.half_id for each in held],
        skipped=[each.half_id for each in of["LOST/skipped"]],
    )
    for half, dropped in zip(held, (False, True), strict=True):
        writer.execute(
            "INSERT INTO outbox.held_record (half_id, nonce, shard, topic_id, xid, n,"
            " publish_error, dropped_at)"
            " VALUES (%s, %s, %s, %s, 1, 1, 'x', CASE WHEN %s THEN clock_timestamp() END)",
            *(half.half_id, half.nonce, half.shard, half.message.topic_id, dropped),
        )
    return {(name, str(half.message_id)) for name, half in faulty}


def named(report: Report) -> set[tuple[str, str]]:
    """Return the cause and the message of each finding about a message."""
    return {(f.cause.value, f.message_id) for f in report.findings if f.message_id}


def gaps(report: Report) -> set[str]:
    """Return the ids of the findings about what expired before a run had judged it."""
    return {f.finding_id for f in report.findings if f.cause.value == "UNVERIFIABLE/expired"}


def test_what_is_missing_is_named_and_stays_named_whatever_the_log_trims(
    writer: OutboxWriter, parts: RunContext, options: Options
) -> None:
    topic = f"{writer.prefix}-points"
    writer.create_topics(topic)
    commit(writer, topic, 20)
    writer.publish()
    writer.expire(topic, TO_THE_END)
    before = run(parts, options)
    assert (before.verdict, before.counts.unverifiable) == (Verdict.INCONCLUSIVE, 20)

    faults = plant(writer, commit(writer, topic, 30))
    assert named(run(parts, options)) == faults

    (lost,) = commit(writer, topic, 1)
    writer.publish(without(lost))
    record_place(writer, lost, 0, 1)
    faults |= {("LOST/published", str(lost.message_id))}
    writer.expire(topic, TO_THE_END)
    after = run(parts, replace(options, full=True))
    assert (named(after), after.verdict) == (faults, Verdict.FINDINGS)
    assert gaps(after) == gaps(before) != set()
    assert (after.changes.unverifiable, after.changes.resolved) == (0, 0)

    skipped, *_ = commit(writer, topic, 12)
    writer.publish(skipped=[skipped.half_id])
    writer.expire(topic, TO_THE_END)
    unread = run(parts, options)
    assert named(unread) == faults | {("LOST/skipped", str(skipped.message_id))}
    # A batch that lists other messages than its range is not judged alone; one without any may be.
    assert unread.counts.unverifiable == (11 if unread.full_because is None else 55)
    assert gaps(unread) > gaps(before)


def test_what_was_published_between_two_runs_is_judged_though_its_manifest_has_expired_unread(
    writer: OutboxWriter, parts: RunContext, options: Options
) -> None:
    """The relay is past it and its topic is whole, so it is there or something is wrong."""
    topic = f"{writer.prefix}-points"
    writer.create_topics(topic)
    halves = writer.prepare(topic, 9, key=b"member-1")

    def publish(some: Sequence[HalfMessage], *, lost: Sequence[HalfMessage] = ()) -> None:
        writer.end(some, Resolution.COMMIT)
        writer.publish(without(*lost), held=[halves[3].half_id])

    publish(halves[:1])
    assert run(parts, options).verdict is Verdict.CLEAN
    publish(halves[1:5], lost=halves[2:3])
    hold(writer, halves[3:4])
    publish(halves[5:8])
    writer.expire_manifests(halves[0].shard, batches=2)

    faults = {
        ("LOST/published", str(halves[2].message_id)),
        ("UNPUBLISHED/held", str(halves[3].message_id)),
    }
    found = run(parts, options)
    assert (named(found), found.verdict) == (faults, Verdict.FINDINGS)
    assert (found.plan.origin.mode, found.counts.baseline, found.counts.judged) == ("full", 1, 7)
    again = run(parts, options)
    assert (named(again), again.changes.resolved) == (faults, 0)

    publish(halves[8:])
    (state,) = writer.shards.values()
    relay = (f"relay:{halves[0].shard}", *state.position, state.batch_no, state.crc)
    writer.execute(RELAY_ROW, *relay)
    writer.expire_manifests(halves[0].shard, batches=2)
    without_any = run(parts, options)
    assert (named(without_any), without_any.counts.in_flight) == (faults, 0)
    assert (without_any.plan.origin.mode, without_any.counts.judged) == ("full", 1)


def test_a_fault_that_was_seen_keeps_later_runs_from_being_clean_when_its_record_has_expired(
    writer: OutboxWriter, parts: RunContext, options: Options
) -> None:
    topic = f"{writer.prefix}-points"
    writer.create_topics(topic)
    doubled = str(commit(writer, topic, 10)[0].message_id)
    writer.publish(lambda r: (r, r) if header_in(r, MESSAGE_ID) == doubled else (r,))
    fault = {("DUPLICATE/repeated", doubled)}
    first = run(parts, options)
    assert (named(first), "from earlier runs" in first.sentence) == (fault, False)
    first_ids = {each.finding_id for each in first.findings}
    for full, why in (
        (False, "this run has read only what is new"),
        (True, "records have expired"),
    ):
        writer.expire(topic, TO_THE_END)
        commit(writer, topic, 4)
        writer.publish()
        later = run(parts, replace(options, full=full))
        assert (named(later), later.verdict) == (fault, Verdict.FINDINGS)
        assert later.sentence.endswith(f"; 1 still open from earlier runs: {why}")
        assert exit_code(later.graded, Tolerance()) == EXIT_FINDINGS
        assert later.changes.known_ids >= first_ids
