"""The times that an operator bounds a run by: they choose what is judged, and decide nothing.

Of each shard a time becomes a manifest: the last one up to then, or the last one before. From there
on only positions count, so a bounded run is as exact as any. Records are read a little further than
that, for those of a batch are older than its manifest.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from outbox.errors import ConfigurationError
from outbox.reconciliation.log import Offsets, Partition
from outbox.reconciliation.ports import LogReader

EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""Everything that is kept is newer."""
MARGIN: Final = timedelta(minutes=10)
"""A record is older than its manifest by the relay's transaction timeout and the broker's delay in
enforcing it at most, 20 s; the rest is for clocks that differ."""
NEXT: Final = timedelta(milliseconds=1)
"""Kafka tells times in milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeBounds:
    """From when up to when a run judges, as far as it is for an operator to say."""

    since: datetime = EARLIEST
    """What was published before has the standing of what is older than the manifests kept."""
    until: datetime | None = None
    floor: Mapping[int, int] = field(default_factory=dict)
    """Where the manifests of each shard ended at the cut before: no run ends before it."""
    floor_at: datetime = EARLIEST
    whole_log: bool = False
    """Read the records from the log's beginning all the same."""

    def cut_at(self, taken_at: datetime) -> datetime:
        """Return up to when a run has judged whose snapshot is of ``taken_at``."""
        return taken_at if self.until is None else min(taken_at, max(self.until, self.floor_at))


EVERYTHING: Final = TimeBounds()


def time_of(text: str) -> datetime:
    """Read ``2026-12-31T12:00:00Z``, or ``earliest``. Raises ValueError for anything else."""
    if text == "earliest":
        return EARLIEST
    with suppress(ValueError):
        time = datetime.fromisoformat(text)
        if time.tzinfo is not None and time >= EARLIEST:
            return time.astimezone(UTC)
    raise ValueError("a time since 1970 with its zone is wanted, such as 2026-12-31T12:00:00Z")


def since_of(asked: datetime | None, *, full: bool, known: datetime | None) -> datetime:
    """Return from when on is judged; ``known`` is what the runs so far have kept to, if any.

    Raises ConfigurationError for what they would be at odds with: findings older than a later time
    could never close, and what is older than they began is read by a full run alone.
    """
    if known is None:
        return EARLIEST if asked is None else asked
    if asked is None or asked == known:
        return known
    if asked > known or not full:
        began = "with all that was kept" if known == EARLIEST else f"at {known.isoformat()}"
        raise ConfigurationError(
            f"--from: the runs so far began {began}; a later time is for a first run alone, "
            "an earlier one needs --full"
        )
    return asked


def manifest_ends(log_facts: LogReader, stable: Offsets, window: TimeBounds) -> Offsets:
    """Return where the manifests of each shard end that the run may go by."""
    if window.until is None:
        return stable
    later = log_facts.offsets_since(list(stable.offsets), window.until + NEXT)
    ends = {
        p: min(end, max(later.offsets.get(p, end), window.floor.get(p.number, 0)))
        for p, end in stable.offsets.items()
        if p not in later.errors
    }
    return Offsets(offsets=ends, errors={**stable.errors, **later.errors})


def record_starts(
    log_facts: LogReader,
    starts: Offsets,
    ends: Offsets,
    window: TimeBounds,
    known_ends: Mapping[Partition, int],
) -> Offsets:
    """Return where the records begin that the run may need: at ``known_ends`` at the latest."""
    if window.since == EARLIEST or window.whole_log:
        return starts
    recent = log_facts.offsets_since(list(starts.offsets), window.since - MARGIN)
    latest = {p: ends.offsets.get(p, start) for p, start in starts.offsets.items()}
    raised = {
        p: max(starts.offsets[p], min(recent.offsets.get(p, end), known_ends.get(p, end)))
        for p, end in latest.items()
        if p not in recent.errors
    }
    return Offsets(offsets=raised, errors={**starts.errors, **recent.errors})


def first_manifests(
    log_facts: LogReader, progress: Collection[Partition], window: TimeBounds
) -> Mapping[int, int] | None:
    """Return, a shard, the first offset of the window; None where all is judged.

    A shard that has published nothing since is left out. One that cannot be asked is judged from
    its beginning.
    """
    if window.since == EARLIEST:
        return None
    found = log_facts.offsets_since(progress, window.since)
    return {p.number: found.offsets[p] for p in found.offsets} | {p.number: 0 for p in found.errors}
