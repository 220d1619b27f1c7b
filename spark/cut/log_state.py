"""The state of the log after a run, stored for the comparison by the next run. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple

from outbox.messages.manifest import Position
from outbox.reconciliation.log import Partition


class Anchor(NamedTuple):
    """Our last record that a run has read in a partition."""

    offset: int
    digest: int


class Baseline(NamedTuple):
    """How far a shard was when a recreated topic was accepted."""

    position: Position
    batch_no: int | None = None
    """Its last batch; None if a version stored it that did not keep the batch."""


class Counted(NamedTuple):
    """A topic's number of partitions, since the first run that has counted as many."""

    partitions: int
    since: datetime
    batches: Mapping[int, int] | None = None
    """By shard the last batch that a relay may have published without knowing all of them; None
    where it is too early to say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogState:
    """The state of the log after a run."""

    topic_ids: Mapping[str, str] = field(default_factory=dict)
    reported: Mapping[str, str] = field(default_factory=dict)
    """By recreated topic that is not accepted yet: its present id. ``topic_ids`` has the former."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Number of partitions per topic."""
    counted: Mapping[str, Counted] = field(default_factory=dict)
    ends: Mapping[Partition, int] = field(default_factory=dict)
    anchors: Mapping[Partition, Anchor] = field(default_factory=dict)
    positions: Mapping[int, Position] = field(default_factory=dict)
    """The position up to which each shard was judged."""
    baselines: Mapping[str, Mapping[int, Baseline]] = field(default_factory=dict)
    """By accepted recreated topic, then by shard: what was published by then is not missing."""

    def without(self, topics: Collection[str]) -> LogState:
        """Return the state as if these topics had never been read."""
        return replace(
            self,
            topic_ids={name: each for name, each in self.topic_ids.items() if name not in topics},
            counts={name: each for name, each in self.counts.items() if name not in topics},
            counted={name: each for name, each in self.counted.items() if name not in topics},
            ends={p: each for p, each in self.ends.items() if p.topic not in topics},
            anchors={p: each for p, each in self.anchors.items() if p.topic not in topics},
        )

    def all_known_after(self, partitions: Mapping[str, int]) -> Mapping[str, Mapping[int, int]]:
        """Return by topic, then by shard, the batch after which its relay knew all ``partitions``.

        Topics are left out of which that is not known.
        """
        return {
            topic: counted.batches
            for topic, counted in self.counted.items()
            if counted.partitions == partitions.get(topic) and counted.batches is not None
        }

    def as_json(self) -> dict[str, Any]:
        """Return the state as it is stored."""
        return {
            "topics": {
                name: {"id": known, "partitions": self.counts.get(name, 0)}
                for name, known in sorted(self.topic_ids.items())
            },
            "recreated": dict(sorted(self.reported.items())),
            "counted": {
                name: {"partitions": each.partitions, "since": each.since.isoformat()}
                | {"batches": _by_text(each.batches)}
                for name, each in sorted(self.counted.items())
            },
            "partitions": [
                {"topic": p.topic, "partition": p.number, "end": end, "anchor": self._anchor(p)}
                for p, end in sorted(self.ends.items())
            ],
            "shards": {str(shard): list(each) for shard, each in sorted(self.positions.items())},
            "baselines": {
                topic: {str(shard): list(each.position) for shard, each in by_shard.items()}
                for topic, by_shard in self.baselines.items()
            },
            "baseline_batches": {
                topic: {str(shard): each.batch_no for shard, each in by_shard.items()}
                for topic, by_shard in self.baselines.items()
            },
        }

    def _anchor(self, partition: Partition) -> list[int] | None:
        anchor = self.anchors.get(partition)
        return None if anchor is None else list(anchor)


def _by_text(batches: Mapping[int, int] | None) -> Mapping[str, int] | None:
    return None if batches is None else {str(shard): n for shard, n in sorted(batches.items())}


def state_of(stored: Mapping[str, Any] | None) -> LogState:
    """Read the stored state of the previous run; empty before the first run."""
    if not stored:
        return LogState()
    rows = [(Partition(p["topic"], p["partition"]), p) for p in stored["partitions"]]
    batches = stored.get("baseline_batches", {})
    return LogState(
        topic_ids={name: each["id"] for name, each in stored["topics"].items()},
        reported=stored["recreated"],
        counts={name: each["partitions"] for name, each in stored["topics"].items()},
        counted={
            name: Counted(
                each["partitions"],
                datetime.fromisoformat(each["since"]),
                each["batches"] and {int(s): n for s, n in each["batches"].items()},
            )
            for name, each in stored.get("counted", {}).items()
        },
        ends={partition: row["end"] for partition, row in rows},
        anchors={partition: Anchor(*row["anchor"]) for partition, row in rows if row["anchor"]},
        positions={int(shard): Position(*each) for shard, each in stored["shards"].items()},
        baselines={
            topic: {
                int(shard): Baseline(Position(*position), batches.get(topic, {}).get(shard))
                for shard, position in by_shard.items()
            }
            for topic, by_shard in stored["baselines"].items()
        },
    )
