"""Reads what is new of both stores without Spark, in the cut and the snapshot of the run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from outbox.messages.manifest import START
from outbox.messages.message_id import SHARDS
from outbox.reconciliation.log import Partition
from outbox.reconciliation.snapshot import LoggedCommit
from spark.checks.misplaced_keys import keyed_topics
from spark.checks.unlogged_commits import unlogged
from spark.cut.checkpoint import (
    Mark,
    PlannedRead,
    Previous,
    continued_read,
    full_read_reason,
    unread_manifests,
    unread_ranges,
)
from spark.cut.cut_plan import LogCut, Range, ShardCut
from spark.cut.log_history import recreation_reason
from spark.cut.shard_spans import newest_batches
from spark.even.evenness import (
    Even,
    matched,
    require_order,
    require_places,
    unread,
)
from spark.even.rows import (
    PlainRecord,
    Uneven,
    is_ahead,
    listed_manifests,
    plain_records,
)
from spark.run_context import Options, RunContext

if TYPE_CHECKING:
    from outbox.postgres.reconciliation.source import PostgresSnapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class EvenRead:
    """What was read: the plan, each message in its place, and every record."""

    planned: PlannedRead
    even: Even
    records: Sequence[PlainRecord]
    """The new ones, and those that were ahead of the previous cut."""


def read_even(
    context: RunContext,
    options: Options,
    log: LogCut,
    snapshot: PostgresSnapshot,
    previous: Previous,
) -> EvenRead:
    """Read both sides, and prove that they are even. Raises Uneven."""
    marks, most = previous.marks, options.small_rows
    _require_few(log, previous, snapshot, most)
    manifests = context.log_reader.between(_offsets(unread_manifests(log, previous)))
    listed = listed_manifests(manifests, marks, most)
    if marks.keys() - listed.keys():
        raise Uneven("the last known manifest of a shard is gone")
    new = {shard: unread(shard, some, marks.get(shard)) for shard, some in listed.items()}
    last = {shard: some[-1] for shard, some in listed.items()}
    planned = continued_read(
        log,
        [
            ShardCut(shard=shard, batch_no=each.manifest.batch_no, position=each.manifest.to)
            for shard, each in last.items()
        ],
        {shard: Mark(each.offset, each.crc) for shard, each in last.items()},
        snapshot.identity,
        previous,
    )
    commits = _commits(previous, snapshot, most)
    found = plain_records(context.log_reader.between(_offsets(planned.plan.reads)))
    records = [each for each in found if _is_unread(each, previous)]
    shards = planned.plan.shards
    cuts = {each.shard: each.batch_no for each in shards}
    newest = newest_batches(shards, snapshot.relay_progress())
    even = matched(new, commits, records, cuts, newest)
    _require_disorderless(even, log, snapshot, options)
    missing = context.run_store.missing([])
    if {*unlogged(snapshot, previous, missing)}.difference(missing):
        raise Uneven("a message that was decided COMMIT is not in the commit log")
    return EvenRead(planned=planned, even=even, records=records)


def _require_few(log: LogCut, previous: Previous, snapshot: PostgresSnapshot, most: int) -> None:
    reason = recreation_reason(log) or full_read_reason(previous, log, snapshot.identity)
    if reason is not None:
        raise Uneven(reason)
    records = unread_ranges(log.records, {**previous.ends, **previous.ahead})
    manifests = unread_manifests(log, previous)
    if max(sum(each.end - each.start for each in some) for some in (records, manifests)) > most:
        raise Uneven(f"there are more than {most} new records")


def _is_unread(record: PlainRecord, previous: Previous) -> bool:
    """Whether no run has judged a record: it is new, or was ahead of the previous cut."""
    if record.offset >= previous.ends.get(record.place, 0):
        return True
    return is_ahead(record, previous.batches, previous.newest)


def _commits(previous: Previous, snapshot: PostgresSnapshot, most: int) -> Sequence[LoggedCommit]:
    after = {shard: previous.positions.get(shard, START) for shard in range(SHARDS)}
    commits = snapshot.commits(after, most)
    if commits is None:
        raise Uneven(f"there are more than {most} new commits")
    return commits


def _require_disorderless(
    even: Even, log: LogCut, snapshot: PostgresSnapshot, options: Options
) -> None:
    counts, rules = log.partition_counts, options.topic_rules
    records = [record for _, record in even.pairs]
    require_order(records)
    require_places(records, keyed_topics(counts, rules))
    due = snapshot.identity.taken_at - timedelta(seconds=options.grace_seconds)
    if any(each.committed_at < due for each in even.in_flight):
        raise Uneven("a committed message is overdue")


def _offsets(ranges: Sequence[Range]) -> dict[Partition, tuple[int, int]]:
    return {each.partition: (each.start, each.end) for each in ranges}
