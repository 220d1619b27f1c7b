"""Takes the cut of the log in the one order that makes it exact: manifests, records, wait.

The snapshot of the database is taken after this has returned.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

from outbox.clock import Clock
from outbox.reconciliation.log import LogEnd, Offsets, Partition, TopicFacts
from outbox.reconciliation.ports import LogReader
from spark.cut import cut_plan, log_history, time_bounds
from spark.cut.log_history import LogState

PAUSE_SECONDS: Final = 0.2
NOTHING_BEFORE: Final = LogState()


def take_log_cut(
    log_facts: LogReader,
    progress_topic: str,
    topics: Callable[[], Sequence[str]],
    clock: Clock,
    pause: Callable[[float], object],
    before: LogState = NOTHING_BEFORE,
    accepted: Collection[str] = (),
    bounds: time_bounds.TimeBounds = time_bounds.EVERYTHING,
) -> cut_plan.LogCut:
    """Freeze the ends of all partitions; topics are asked for after the manifests' ends.

    A topic that is interned later holds no record of a manifest below those ends. What has become
    of the log since ``before`` is told as well; of ``accepted`` topics nothing is held against it.
    """
    progress = log_facts.partitions([progress_topic])
    stable_ends = log_facts.offsets(progress, LogEnd.LAST_STABLE)
    manifest_ends = time_bounds.manifest_ends(log_facts, stable_ends, bounds)
    manifest_starts = log_facts.offsets(progress, LogEnd.START)
    wanted = [topic for topic in topics() if topic != progress_topic]
    described = log_facts.describe(wanted)
    data = log_facts.partitions(wanted)
    highs = log_facts.offsets([*data, *progress], LogEnd.HIGH_WATERMARK)
    stable, stuck = _stable_ends(log_facts, highs, clock, pause)
    ends, begins = _of(data, stable), log_facts.offsets(data, LogEnd.START)
    starts = time_bounds.record_starts(log_facts, begins, ends, bounds, before.ends)
    log = cut_plan.LogCut(
        progress_topic=progress_topic,
        manifests=cut_plan.ranges(manifest_starts, manifest_ends),
        records=cut_plan.ranges(starts, ends),
        gaps=(
            *cut_plan.gaps(progress, (manifest_starts, manifest_ends), _among(progress, stuck)),
            *cut_plan.gaps(data, (_of(data, highs), starts, ends), _among(data, stuck)),
        ),
        window=bounds,
        first_manifests=time_bounds.first_manifests(log_facts, progress, bounds),
        topics=log_history.facts_in(described),
        accepted=log_history.recreated(before, log_history.facts_in(described)) & {*accepted},
    )
    return _since(before.without(log.accepted), log, log_facts, described, wanted)


def _since(
    before: LogState,
    log: cut_plan.LogCut,
    log_facts: LogReader,
    described: Mapping[str, TopicFacts | str],
    wanted: Collection[str],
) -> cut_plan.LogCut:
    """Return the cut with what has become of the log; a topic made anew is not read."""
    gaps = log_history.unread(before, described, wanted, log.records)
    unread = {each.partition for each in gaps if each.finding_class != "RETENTION_GAP"}
    readable = tuple(each for each in log.records if each.partition not in unread)
    found = log_facts.next_records(log_history.anchors_to_read(before, readable))
    changes = log_history.changes(before, log.topics, readable, found)
    every = (*log.gaps, *gaps)
    return replace(log, records=readable, gaps=every, changes=changes, before=before)


def _of(partitions: Collection[Partition], answers: Offsets) -> Offsets:
    wanted = {*partitions}
    return Offsets(
        offsets={p: offset for p, offset in answers.offsets.items() if p in wanted},
        errors={p: error for p, error in answers.errors.items() if p in wanted},
    )


def _among(partitions: Collection[Partition], stuck: Sequence[Partition]) -> list[Partition]:
    wanted = {*partitions}
    return [each for each in stuck if each in wanted]


def _stable_ends(
    log_facts: LogReader, highs: Offsets, clock: Clock, pause: Callable[[float], object]
) -> tuple[Offsets, tuple[Partition, ...]]:
    """Wait until every transaction below the high watermarks has ended; tell which have not."""
    deadline = clock.monotonic() + cut_plan.STABLE_WAIT_SECONDS
    stable = log_facts.offsets(list(highs.offsets), LogEnd.LAST_STABLE)
    while (stuck := cut_plan.waiting(highs, stable)) and clock.monotonic() < deadline:
        pause(PAUSE_SECONDS)
        stable = log_facts.offsets(list(highs.offsets), LogEnd.LAST_STABLE)
    return stable, stuck
