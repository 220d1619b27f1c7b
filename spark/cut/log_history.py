"""The changes of the log since the previous run: turns facts into coverage findings. Pure.

Offsets alone do not show that a topic was recreated, or that a log was truncated and has grown
again. So a run stores each topic's id, the end of each partition, and its *anchor*: our last record
that was read there, which must still be the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Final

from outbox.messages.content_digest import content_digest
from outbox.messages.message_id import SHARDS
from outbox.reconciliation.log import WHOLE_TOPIC, LogRecord, Partition, TopicFacts
from outbox.reconciliation.snapshot import SnapshotIdentity
from spark.columns.digest import covered_in, message_id_in
from spark.cut.cut_plan import Gap, LogCut, Range, ShardCut
from spark.cut.log_state import Anchor, Baseline, Counted, LogState

METADATA_AGE: Final = timedelta(minutes=20)
"""After this time every relay knows that a topic has grown: its client asks every five minutes, and
forgets what it has not been told again for fifteen."""


def recreated_topics(before: LogState, topics: Mapping[str, TopicFacts]) -> frozenset[str]:
    """Return the topics whose id has changed."""
    known = before.topic_ids
    return frozenset(name for name, each in topics.items() if known.get(name, each.id) != each.id)


def unreadable_ranges(
    before: LogState,
    described: Mapping[str, TopicFacts | str],
    wanted: Collection[str],
    ranges: Iterable[Range],
) -> tuple[Gap, ...]:
    """Return what can no longer be read: deleted or refused topics, expired ranges."""
    found: list[Gap] = []
    for each in ranges:
        end = before.ends.get(each.partition, each.start)
        if each.start > end:
            reason = f"offsets {end} to {each.start - 1} expired before they were read"
            found.append(_gap("UNVERIFIABLE/expired", each.partition, reason))
    missing = {each for each in wanted if each in before.topic_ids and each not in described}
    found += [
        _gap("UNVERIFIABLE/not_read", p, "the topic is gone")
        for p in before.ends
        if p.topic in missing
    ]
    refused = [(name, why) for name, why in described.items() if isinstance(why, str)]
    return (
        *found,
        *(_gap("UNVERIFIABLE/not_read", Partition(n, WHOLE_TOPIC), why) for n, why in refused),
    )


def facts_in(described: Mapping[str, TopicFacts | str]) -> dict[str, TopicFacts]:
    """Return the topics that Kafka describes to us."""
    return {name: each for name, each in described.items() if isinstance(each, TopicFacts)}


def changes(
    before: LogState,
    topics: Mapping[str, TopicFacts],
    ranges: Iterable[Range],
    found: Mapping[Partition, LogRecord | None],
) -> tuple[Gap, ...]:
    """Return the faults of the partitions that were read: truncated logs, added partitions.

    ``found`` is the record at each anchor now, or the next one where that record no longer exists.
    """
    cut_off = [
        _gap("LOG_CHANGED/truncated", each.partition, reason)
        for each in ranges
        if (reason := _truncation_reason(each, before, topics, found))
    ]
    counted = [(name, before.counts.get(name, t.partitions), t) for name, t in topics.items()]
    grown = [
        _gap(
            "LOG_CHANGED/partitions",
            Partition(name, WHOLE_TOPIC),
            f"{n} before, {t.partitions} now",
        )
        for name, n, t in sorted(counted, key=lambda each: each[0])
        if n != t.partitions and before.topic_ids.get(name) == t.id
    ]
    return (*cut_off, *grown)


def anchors_to_read(before: LogState, ranges: Iterable[Range]) -> dict[Partition, int]:
    """Return the offsets of the anchors that the log must still keep."""
    return {
        each.partition: anchor.offset
        for each in ranges
        if (anchor := before.anchors.get(each.partition)) and each.start <= anchor.offset < each.end
    }


def recreation_reason(log: LogCut) -> str | None:
    """Return why recreated topics make a full read necessary; None without one.

    The ends of the last run are offsets of the former topics: no run has read what is before them.
    """
    if log.accepted:
        return f"{min(log.accepted)} was recreated, and is accepted"
    return f"{min(log.former_ids)} was recreated" if log.former_ids else None


def recreations(log: LogCut) -> tuple[Gap, ...]:
    """Return the recreated topics that are not accepted."""
    return tuple(
        _gap(
            "LOG_CHANGED/recreated",
            Partition(topic, WHOLE_TOPIC),
            f"the topic {former} is {log.topics[topic].id} now",
        )
        for topic, former in sorted(log.former_ids.items())
    )


def baselines(log: LogCut, shards: Iterable[ShardCut]) -> Mapping[str, Mapping[int, Baseline]]:
    """Return by accepted topic how far each shard was then: earlier messages are not missing."""
    now = {each.shard: Baseline(each.position, each.batch_no) for each in shards}
    before = log.before or LogState()
    return {**before.baselines, **dict.fromkeys(sorted(log.accepted), now)}


def state_after_run(
    log: LogCut,
    shards: Iterable[ShardCut],
    anchors: Mapping[Partition, Anchor],
    snapshot: SnapshotIdentity,
) -> LogState:
    """Return the state of the log after the run of this cut."""
    before = log.before or LogState()
    shards = list(shards)
    left = next_state(before, log.topics, log.records, anchors, baselines(log, shards))
    positions = {each.shard: each.position for each in shards}
    return replace(
        left,
        topic_ids={**left.topic_ids, **log.former_ids},
        reported={topic: log.topics[topic].id for topic in log.former_ids},
        positions={**before.positions, **positions},
        counted=counted_after_run(before, left, shards, snapshot),
    )


def counted_after_run(
    before: LogState, left: LogState, shards: Iterable[ShardCut], snapshot: SnapshotIdentity
) -> Mapping[str, Counted]:
    """Return since when each topic has its number of partitions, and which batches came later.

    A relay may publish by an older number for some time after a topic has grown. The time bounds
    how long that may be; what is judged by it is named by batches alone. A clock that was set back
    begins it again.
    """
    taken_at = snapshot.taken_at
    batches = dict.fromkeys(range(SHARDS), 0) | {each.shard: each.batch_no for each in shards}
    counted = dict(before.counted)
    for topic, partitions in left.counts.items():
        known = counted.get(topic)
        if known is None or known.partitions != partitions:
            counted[topic] = Counted(partitions, taken_at)
        elif known.batches is None and known.since > taken_at:
            counted[topic] = known._replace(since=taken_at)
        elif known.batches is None and taken_at - known.since >= METADATA_AGE:
            counted[topic] = known._replace(batches=batches)
    return counted


def next_state(
    before: LogState,
    topics: Mapping[str, TopicFacts],
    ranges: Iterable[Range],
    anchors: Mapping[Partition, Anchor],
    baselines: Mapping[str, Mapping[int, Baseline]],
) -> LogState:
    """Return the state after this run; partitions that it has not read keep their old state."""
    ends = {each.partition: each.end for each in ranges}
    read = {name: each for name, each in topics.items() if any(p.topic == name for p in ends)}
    kept = {p: a for p, a in before.anchors.items() if a.offset < ends.get(p, a.offset + 1)}
    newest = {p: a for p, a in anchors.items() if p not in kept or a.offset >= kept[p].offset}
    return LogState(
        topic_ids={**before.topic_ids, **{name: each.id for name, each in read.items()}},
        counts={**before.counts, **{name: each.partitions for name, each in read.items()}},
        ends={**before.ends, **ends},
        anchors={**kept, **newest},
        baselines={**before.baselines, **baselines},
    )


def digest_of(record: LogRecord) -> int:
    """Return the signed content digest of our record, as Spark computes it."""
    return content_digest(
        message_id_in(record),
        record.partition.topic,
        record.key,
        record.value,
        covered_in(record),
    )


def _gap(cause: str, partition: Partition, reason: str) -> Gap:
    return Gap(cause=cause, partition=partition, reason=reason)


def _truncation_reason(
    each: Range,
    before: LogState,
    topics: Mapping[str, TopicFacts],
    found: Mapping[Partition, LogRecord | None],
) -> str | None:
    """Return how a log has lost its tail; None if it has not, or if that is unknown."""
    end, anchor = before.ends.get(each.partition), before.anchors.get(each.partition)
    if end is not None and each.end < end:
        return f"the log ended at {end} before, and ends at {each.end} now"
    if anchor is None or each.partition not in found:
        return None
    present = found[each.partition]
    if present is None or present.offset != anchor.offset:
        lost = f"the record at {anchor.offset}, the last one before, is gone"
        return None if topics[each.partition.topic].compacts else lost
    if digest_of(present) != anchor.digest:
        return f"the record at {anchor.offset}, the last one before, is another one now"
    return None
