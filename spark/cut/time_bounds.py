"""The times by which an operator bounds a run: they choose what is judged, and decide no verdict.

In each shard a time is replaced by a manifest: the last one up to it, or the last one before it.
From there on only positions count, so a bounded run is as exact as any other. Records are read from
a little earlier, because the records of a batch are older than its manifest.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from outbox.errors import ConfigurationError
from outbox.reconciliation.log import LogReader, Offsets, Partition

EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""A time before everything that is kept."""
MARGIN: Final = timedelta(minutes=10)
"""A record is older than its manifest by at most 20 s: the relay's transaction timeout plus the
broker's delay in enforcing it. The rest is a margin for clocks that differ."""
MILLISECOND: Final = timedelta(milliseconds=1)
"""The resolution of Kafka's times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeBounds:
    """The times between which a run judges, as far as an operator bounds them."""

    since: datetime = EARLIEST
    """What was published before has the standing of commits older than the kept manifests."""
    until: datetime | None = None
    floor: Mapping[int, int] = field(default_factory=dict)
    """The end of the manifests of each shard at the previous cut: no run ends before it."""
    floor_at: datetime = EARLIEST

    def cut_at(self, taken_at: datetime) -> datetime:
        """Return the time up to which a run judges whose snapshot was taken at ``taken_at``."""
        return taken_at if self.until is None else min(taken_at, max(self.until, self.floor_at))


UNBOUNDED: Final = TimeBounds()


def parse_time(text: str) -> datetime:
    """Read ``2026-12-31T12:00:00Z``, or ``earliest``. Raises ValueError for anything else."""
    if text == "earliest":
        return EARLIEST
    with suppress(ValueError):
        time = datetime.fromisoformat(text)
        if time.tzinfo is not None and time >= EARLIEST:
            return time.astimezone(UTC)
    raise ValueError("expected a time since 1970 with its zone, such as 2026-12-31T12:00:00Z")


def since_of(asked: datetime | None, *, full: bool, known: datetime | None) -> datetime:
    """Return the start of the judged time; ``known`` is the start of the runs so far, if any.

    Raises ConfigurationError for a time that contradicts ``known``. After a later time, older
    findings could never close. What is older than ``known`` is read only by a full run.
    """
    if known is None:
        return EARLIEST if asked is None else asked
    if asked is None or asked == known:
        return known
    if asked > known or not full:
        began = "with all that was kept" if known == EARLIEST else f"at {known.isoformat()}"
        raise ConfigurationError(
            f"--from: the runs so far began {began}; only a first run accepts a later time, "
            "an earlier one needs --full"
        )
    return asked


def manifest_ends(log_reader: LogReader, stable: Offsets, bounds: TimeBounds) -> Offsets:
    """Return the end of the manifests of each shard that the run may use."""
    if bounds.until is None:
        return stable
    later = log_reader.offsets_since(list(stable.offsets), bounds.until + MILLISECOND)
    ends = {
        p: min(end, max(later.offsets.get(p, end), bounds.floor.get(p.number, 0)))
        for p, end in stable.offsets.items()
        if p not in later.errors
    }
    return Offsets(offsets=ends, errors={**stable.errors, **later.errors})


def record_starts(
    log_reader: LogReader,
    starts: Offsets,
    ends: Offsets,
    bounds: TimeBounds,
    known_ends: Mapping[Partition, int],
) -> Offsets:
    """Return where the records begin that the run may need, ``known_ends`` at the latest."""
    if bounds.since == EARLIEST:
        return starts
    recent = log_reader.offsets_since(list(starts.offsets), bounds.since - MARGIN)
    latest = {p: ends.offsets.get(p, start) for p, start in starts.offsets.items()}
    raised = {
        p: max(starts.offsets[p], min(recent.offsets.get(p, end), known_ends.get(p, end)))
        for p, end in latest.items()
        if p not in recent.errors
    }
    return Offsets(offsets=raised, errors={**starts.errors, **recent.errors})


def first_manifests(
    log_reader: LogReader, progress: Collection[Partition], bounds: TimeBounds
) -> Mapping[int, int] | None:
    """Return per shard the offset of the first manifest to judge; None where all are judged.

    A shard that has published nothing since is left out. A shard without an answer is judged from
    its beginning.
    """
    if bounds.since == EARLIEST:
        return None
    found = log_reader.offsets_since(progress, bounds.since)
    return {p.number: found.offsets[p] for p in found.offsets} | {p.number: 0 for p in found.errors}
