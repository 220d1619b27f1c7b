"""The state of the log after a run, stored for the comparison by the next run. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
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


@dataclass(frozen=True, slots=True, kw_only=True)
class LogState:
    """The state of the log after a run."""

    topic_ids: Mapping[str, str] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    """Number of partitions per topic."""
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
            ends={p: each for p, each in self.ends.items() if p.topic not in topics},
            anchors={p: each for p, each in self.anchors.items() if p.topic not in topics},
        )

    def as_json(self) -> dict[str, Any]:
        """Return the state as it is stored."""
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


def state_of(stored: Mapping[str, Any] | None) -> LogState:
    """Read the stored state of the previous run; empty before the first run."""
    if not stored:
        return LogState()
    rows = [(Partition(p["topic"], p["partition"]), p) for p in stored["partitions"]]
    batches = stored.get("baseline_batches", {})
    return LogState(
        topic_ids={name: each["id"] for name, each in stored["topics"].items()},
        counts={name: each["partitions"] for name, each in stored["topics"].items()},
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
