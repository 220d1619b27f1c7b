"""In which order the two stores are asked: the order is what makes a cut exact."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any, cast

import pytest

from outbox.reconciliation.log import LogEnd, LogRecord, Offsets, Partition, TopicFacts
from outbox.reconciliation.ports import SourceSnapshot
from outbox.reconciliation.snapshot import RelayCut
from spark.audit.audit import Audit
from spark.cut.cut_capture import capture_log_cut
from spark.progress import Progress
from spark.run_context import Options, RunContext

MANIFESTS, DATA = Partition("progress", 0), Partition("points", 0)
MANIFEST_END = ("progress", LogEnd.LAST_STABLE)
DATA_HIGH, DATA_STABLE = ("points", LogEnd.HIGH_WATERMARK), ("points", LogEnd.LAST_STABLE)


class SnapshotTaken(Exception):
    """All that is asked before the snapshot has been asked."""


@dataclass
class Noting:
    """Both stores, which note what they are asked; a transaction stays open for two looks."""

    asked: list[Any] = field(default_factory=list)
    looks: int = 0
    since: Mapping[datetime, Mapping[Partition, int]] = field(default_factory=dict)
    silent: Partition | None = None
    jdbc: Any = None

    def unlisted(self) -> Sequence[RelayCut]:
        """Return the rows of no relay."""
        self.asked.append("unlisted")
        return []

    def topics(self) -> Sequence[str]:
        """Return the topic of data."""
        self.asked.append("topics")
        return ["points"]

    def snapshot(self) -> AbstractContextManager[SourceSnapshot]:
        """Note the snapshot and go no further."""
        self.asked.append("snapshot")
        raise SnapshotTaken

    def partitions(self, topics: Collection[str]) -> Sequence[Partition]:
        """Return a partition a topic."""
        return [Partition(topic, 0) for topic in topics]

    def offsets(self, partitions: Collection[Partition], end: LogEnd) -> Offsets:
        """Return ten records of each partition, the last one within an open transaction."""
        self.asked += [(partition.topic, end) for partition in partitions]
        if end is LogEnd.START:
            return Offsets(offsets=dict.fromkeys(partitions, 0))
        if end is LogEnd.LAST_STABLE and DATA in partitions:
            self.looks += 1
            return Offsets(offsets={DATA: 9 if self.looks < 3 else 12})
        return Offsets(offsets=dict.fromkeys(partitions, 10))

    def offsets_since(self, partitions: Collection[Partition], at: datetime) -> Offsets:
        """Return what is set for the time; the one partition that is silent fails."""
        found = self.since.get(at, {})
        errors = {p: "no answer" for p in partitions if p == self.silent}
        known = {p: found[p] for p in partitions if p in found and p not in errors}
        return Offsets(offsets=known, errors=errors)

    def describe(self, topics: Collection[str]) -> Mapping[str, TopicFacts | str]:
        """Return the topic of data, always the same."""
        return {topic: TopicFacts(id="first", partitions=1) for topic in topics}

    def next_records(self, places: Mapping[Partition, int]) -> Mapping[Partition, LogRecord | None]:
        """Return nothing."""
        return {}

    def records(self, places: Collection[tuple[Partition, int]]) -> Sequence[LogRecord]:
        """Return nothing."""
        return []


class NoRuns:
    """A run store before the first run."""

    def checkpoint(self) -> None:
        """Return no cut."""

    def log_state(self) -> None:
        """Return nothing of the log."""


class Clock:
    """A clock that stands still."""

    def now(self) -> datetime:
        """Return some time."""
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        """Return the same time."""
        return 0.0


def asked_by_a_run() -> list[Any]:
    """Return what a run asks the stores up to the snapshot, in order."""
    stores, clock = Noting(), Clock()
    parts = RunContext(
        source=stores,
        log_reader=stores,
        run_store=cast("Any", NoRuns()),
        sources=cast("Any", None),
        clock=clock,
        progress=Progress(stream=StringIO(), clock=clock),
        pause=lambda seconds: None,
    )
    options = Options(
        progress_topic="progress",
        report_dir=Path("nowhere"),
        stage_uri="file:///nowhere",
        grace_seconds=0,
        versions={},
    )
    with pytest.raises(SnapshotTaken):
        Audit(parts, options).run()
    return stores.asked


def test_the_snapshot_is_taken_last() -> None:
    asked = asked_by_a_run()
    assert asked[-1] == "snapshot"
    assert {MANIFEST_END, DATA_HIGH, DATA_STABLE, "unlisted", "topics"} <= set(asked)


def test_the_manifests_end_before_the_records_and_both_before_the_wait() -> None:
    asked = asked_by_a_run()
    order = [asked.index(each) for each in (MANIFEST_END, "topics", DATA_HIGH, DATA_STABLE)]
    assert order == sorted(order)
    assert asked.index("unlisted") < asked.index(DATA_HIGH)


def test_every_transaction_below_the_high_watermark_is_waited_for() -> None:
    stores = Noting()
    log = capture_log_cut(stores, "progress", stores.topics, Clock(), lambda seconds: None)
    assert (stores.looks, log.gaps) == (3, ())
    assert [(each.partition, each.start, each.end) for each in log.records] == [(DATA, 0, 12)]
    assert [(each.partition, each.end) for each in log.manifests] == [(MANIFESTS, 10)]
