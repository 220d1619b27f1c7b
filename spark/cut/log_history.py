"""What has become of the log since the run before: facts in, coverage findings out. Pure.

Offsets alone do not tell a topic that was made anew, or a log that was cut off and has grown again.
So a run leaves behind each topic's id, where each partition ended, and its *anchor*: the last
record of ours that was read there, which must still be the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from xxhash import xxh64_intdigest

from outbox.messages import record as headers_of
from outbox.messages.manifest import Position
from outbox.reconciliation.log import ANY_PARTITION, LogRecord, Partition, TopicFacts
from spark.cut.cut_plan import Gap, LogCut, Range, ShardCut

LEADING: Final = (headers_of.MESSAGE_ID, headers_of.BATCH, headers_of.DECIDED_BY)
UNCOVERED: Final = (*LEADING, headers_of.REDRIVEN)
SEED: Final = 42


class Anchor(NamedTuple):
    """The last record of ours in a partition, as a run has read it."""

    offset: int
    digest: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogState:
    """What a run leaves behind of the log, for the next one to compare with."""

    topic_ids: Mapping[str, str] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    """Partitions a topic."""
    ends: Mapping[Partition, int] = field(default_factory=dict)
    anchors: Mapping[Partition, Anchor] = field(default_factory=dict)
    positions: Mapping[int, Position] = field(default_factory=dict)
    """Up to where each shard was judged."""
    baselines: Mapping[str, Mapping[int, Position]] = field(default_factory=dict)
    """By topic that was accepted anew, then by shard: nothing up to there is missed in it."""

    def without(self, topics: Collection[str]) -> LogState:
        """Return the state as if these topics had never been read."""
        return replace(
            self,
            topic_ids={name: each for name, each in self.topic_ids.items() if name not in topics},
            counts={name: each for name, each in self.counts.items() if name not in topics},
            ends={p: each for p, each in self.ends.items() if p.topic not in topics},
            anchors={p: each for p, each in self.anchors.items() if p.topic not in topics},
        )

    def as_json(self) -> dict[str, Any]:
        """Return it as it is stored."""
        return {
            "topics": {
                name: {"id": known, "partitions": self.counts.get(name, 0)}
                for name, known in sorted(self.topic_ids.items())
            },
            "partitions": [
                {"topic": p.topic, "partition": p.number, "end": end, "anchor": self._anchor(p)}
                for p, end in sorted(self.ends.items())
            ],
            "shards": {str(shard): list(each) for shard, each in sorted(self.positions.items())},
            "baselines": {
                topic: {str(shard): list(position) for shard, position in by_shard.items()}
                for topic, by_shard in self.baselines.items()
            },
        }

    def _anchor(self, partition: Partition) -> list[int] | None:
        anchor = self.anchors.get(partition)
        return None if anchor is None else list(anchor)


def state_of(stored: Mapping[str, Any] | None) -> LogState:
    """Read what the run before left behind; nothing before the first."""
    if not stored:
        return LogState()
    rows = [(Partition(p["topic"], p["partition"]), p) for p in stored["partitions"]]
    return LogState(
        topic_ids={name: each["id"] for name, each in stored["topics"].items()},
        counts={name: each["partitions"] for name, each in stored["topics"].items()},
        ends={partition: row["end"] for partition, row in rows},
        anchors={partition: Anchor(*row["anchor"]) for partition, row in rows if row["anchor"]},
        positions={int(shard): Position(*each) for shard, each in stored["shards"].items()},
        baselines={
            topic: {int(shard): Position(*position) for shard, position in by_shard.items()}
            for topic, by_shard in stored["baselines"].items()
        },
    )


def recreated(before: LogState, topics: Mapping[str, TopicFacts]) -> frozenset[str]:
    """Return the topics that bear another id than they did."""
    known = before.topic_ids
    return frozenset(name for name, each in topics.items() if known.get(name, each.id) != each.id)


def unread(
    before: LogState,
    described: Mapping[str, TopicFacts | str],
    wanted: Collection[str],
    ranges: Iterable[Range],
) -> tuple[Gap, ...]:
    """Return what cannot be read any more: topics made anew, gone or refused, expired ranges."""
    new = recreated(before, facts_in(described))
    found: list[Gap] = []
    for each in ranges:
        end = before.ends.get(each.partition, each.start)
        if each.partition.topic in new:
            found.append(_gap("TOPIC_RECREATED", each.partition, _anew(before, described, each)))
        elif each.start > end:
            reason = f"offsets {end} to {each.start - 1} expired before they were read"
            found.append(_gap("RETENTION_GAP", each.partition, reason))
    gone = {each for each in wanted if each in before.topic_ids and each not in described}
    found += [_gap("NOT_READ", p, "the topic is gone") for p in before.ends if p.topic in gone]
    refused = [(name, why) for name, why in described.items() if isinstance(why, str)]
    return (*found, *(_gap("NOT_READ", Partition(n, ANY_PARTITION), why) for n, why in refused))


def facts_in(described: Mapping[str, TopicFacts | str]) -> dict[str, TopicFacts]:
    """Return the topics that we may look at."""
    return {name: each for name, each in described.items() if isinstance(each, TopicFacts)}


def changes(
    before: LogState,
    topics: Mapping[str, TopicFacts],
    ranges: Iterable[Range],
    found: Mapping[Partition, LogRecord | None],
) -> tuple[Gap, ...]:
    """Return what is wrong with what could be read: logs cut off, partitions added.

    ``found`` is what lies at each anchor now, or behind it where the anchor is gone.
    """
    cut_off = [
        _gap("LOG_TRUNCATED", each.partition, reason)
        for each in ranges
        if (reason := _why_cut_off(each, before, topics, found))
    ]
    counted = [(name, before.counts.get(name, t.partitions), t) for name, t in topics.items()]
    grown = [
        _gap(
            "PARTITIONS_CHANGED", Partition(name, ANY_PARTITION), f"{n} before, {t.partitions} now"
        )
        for name, n, t in sorted(counted, key=lambda each: each[0])
        if n != t.partitions and before.topic_ids.get(name) == t.id
    ]
    return (*cut_off, *grown)


def anchors_to_read(before: LogState, ranges: Iterable[Range]) -> dict[Partition, int]:
    """Return the anchors that the log should still keep."""
    return {
        each.partition: anchor.offset
        for each in ranges
        if (anchor := before.anchors.get(each.partition)) and each.start <= anchor.offset < each.end
    }


def baselines(log: LogCut, shards: Iterable[ShardCut]) -> Mapping[str, Mapping[int, Position]]:
    """Return up to where nothing is missed in topics that were accepted, now or before."""
    now = {each.shard: each.position for each in shards}
    before = log.before or LogState()
    return {**before.baselines, **dict.fromkeys(sorted(log.accepted), now)}


def after_run(
    log: LogCut, shards: Iterable[ShardCut], anchors: Mapping[Partition, Anchor]
) -> LogState:
    """Return what the run of this cut leaves behind."""
    before = log.before or LogState()
    shards = list(shards)
    left = after(before, log.topics, log.records, anchors, baselines(log, shards))
    positions = {each.shard: each.position for each in shards}
    return replace(left, positions={**before.positions, **positions})


def after(
    before: LogState,
    topics: Mapping[str, TopicFacts],
    ranges: Iterable[Range],
    anchors: Mapping[Partition, Anchor],
    baselines: Mapping[str, Mapping[int, Position]],
) -> LogState:
    """Return what this run leaves behind; what it has not read stays as it was before."""
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
    """Return the content digest of our record, signed, as ``spark/columns/digest.py`` does."""
    names = tuple(name for name, _ in record.headers[: len(LEADING)])
    by_name = [value for name, value in record.headers if name == headers_of.MESSAGE_ID]
    flag = ("-" if record.key is None else "k") + ("-" if record.value is None else "v")
    covered = [h for h in record.headers if h[0] not in UNCOVERED]
    if names == LEADING:
        covered = list(record.headers[len(LEADING) :])
        covered = covered[1:] if covered and covered[0][0] == headers_of.REDRIVEN else covered
    pieces = [
        *by_name[:1],
        record.partition.topic.encode(),
        flag.encode(),
        record.key,
        record.value,
    ]
    for name, value in covered:
        pieces += [name.encode(), value]
    digest = SEED
    for piece in pieces:
        digest = digest if piece is None else xxh64_intdigest(piece, digest)
    return digest - (1 << 64) if digest >= 1 << 63 else digest


def _gap(finding_class: str, partition: Partition, reason: str) -> Gap:
    return Gap(finding_class=finding_class, partition=partition, reason=reason)


def _anew(before: LogState, described: Mapping[str, TopicFacts | str], each: Range) -> str:
    topic = each.partition.topic
    return f"the topic {before.topic_ids[topic]} is {facts_in(described)[topic].id} now"


def _why_cut_off(
    each: Range,
    before: LogState,
    topics: Mapping[str, TopicFacts],
    found: Mapping[Partition, LogRecord | None],
) -> str | None:
    """Return how a log has lost its tail; None if it has not, or if nobody can tell any more."""
    end, anchor = before.ends.get(each.partition), before.anchors.get(each.partition)
    if end is not None and each.end < end:
        return f"the log ended at {end} before, and ends at {each.end} now"
    if anchor is None or each.partition not in found:
        return None
    there = found[each.partition]
    if there is None or there.offset != anchor.offset:
        gone = f"the record at {anchor.offset}, the last one before, is gone"
        return None if topics[each.partition.topic].compacts else gone
    if digest_of(there) != anchor.digest:
        return f"the record at {anchor.offset}, the last one before, is another one now"
    return None
