"""The state of the log after a run, stored for the comparison by the next run. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, NamedTuple

from msgspec import convert, to_builtins

from outbox.messages.manifest import Position
from outbox.reconciliation.log import Partition

PARTITIONS: Final = "partitions"
"""JSON has no key for a partition: end and anchor are rows in the stored state."""


class Anchor(NamedTuple):
    """Our last record that a run has read in a partition."""

    offset: int
    digest: int


class Baseline(NamedTuple):
    """How far a shard was when a recreated topic was accepted."""

    position: Position
    batch_no: int
    """Its last batch."""


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
        rows = [[*p, end, self.anchors.get(p)] for p, end in sorted(self.ends.items())]
        others = replace(self, ends={}, anchors={})
        return {**to_builtins(others, str_keys=True), PARTITIONS: rows}


def state_of(stored: Mapping[str, Any]) -> LogState:
    """Read the stored state of the previous run."""
    rows = [(Partition(topic, number), end, a) for topic, number, end, a in stored[PARTITIONS]]
    return replace(
        convert(stored, LogState, str_keys=True),
        ends={partition: end for partition, end, _ in rows},
        anchors={partition: Anchor(*anchor) for partition, _, anchor in rows if anchor},
    )
