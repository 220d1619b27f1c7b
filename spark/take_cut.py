"""Takes the cut of the log in the one order that makes it exact: manifests, records, wait.

The snapshot of the database is taken after this has returned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from outbox.clock import Clock
from outbox.reconciliation import LogEnd, Offsets, Partition
from outbox.reconciliation_ports import LogFacts
from spark import cut

PAUSE_SECONDS: Final = 0.2


def take_log_cut(
    log_facts: LogFacts,
    progress_topic: str,
    topics: Callable[[], Sequence[str]],
    clock: Clock,
    pause: Callable[[float], object],
) -> cut.LogCut:
    """Freeze the ends of all partitions; topics are asked for after the manifests' ends.

    A topic that is interned later holds no record of a manifest below those ends.
    """
    progress = log_facts.partitions([progress_topic])
    manifest_ends = log_facts.offsets(progress, LogEnd.LAST_STABLE)
    manifest_starts = log_facts.offsets(progress, LogEnd.START)
    data = log_facts.partitions([topic for topic in topics() if topic != progress_topic])
    highs = log_facts.offsets(data, LogEnd.HIGH_WATERMARK)
    ends, stuck = _stable_ends(log_facts, highs, clock, pause)
    starts = log_facts.offsets(data, LogEnd.START)
    return cut.LogCut(
        progress_topic=progress_topic,
        manifests=cut.ranges(manifest_starts, manifest_ends),
        records=cut.ranges(starts, ends),
        gaps=(
            *cut.gaps(progress, (manifest_starts, manifest_ends), ()),
            *cut.gaps(data, (highs, starts, ends), stuck),
        ),
    )


def _stable_ends(
    log_facts: LogFacts, highs: Offsets, clock: Clock, pause: Callable[[float], object]
) -> tuple[Offsets, tuple[Partition, ...]]:
    """Wait until every transaction below the high watermarks has ended; tell which have not."""
    deadline = clock.monotonic() + cut.STABLE_WAIT_SECONDS
    stable = log_facts.offsets(list(highs.offsets), LogEnd.LAST_STABLE)
    while (stuck := cut.waiting(highs, stable)) and clock.monotonic() < deadline:
        pause(PAUSE_SECONDS)
        stable = log_facts.offsets(list(highs.offsets), LogEnd.LAST_STABLE)
    return stable, stuck
