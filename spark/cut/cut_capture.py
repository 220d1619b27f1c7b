"""Captures the cut of the log in the only order that makes it exact: manifests, records, wait.

The snapshot of the database is taken after this has returned.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from outbox.clock import Clock
from outbox.errors import KafkaForbidden
from outbox.reconciliation.log import WHOLE_TOPIC, LogEnd, Offsets, Partition, TopicFacts
from spark.cut import cut_plan, log_history
from spark.cut.log_state import LogState

if TYPE_CHECKING:
    from outbox.kafka.log_reader import KafkaLogReader

PAUSE_SECONDS: Final = 0.2
NOTHING_BEFORE: Final = LogState()


def capture_log_cut(
    log_reader: KafkaLogReader,
    progress_topic: str,
    topics: Callable[[], Sequence[str]],
    clock: Clock,
    pause: Callable[[float], object],
    before: LogState = NOTHING_BEFORE,
    accepted: Collection[str] = (),
) -> cut_plan.LogCut:
    """Freeze the ends of all partitions; the topics are read after the ends of the manifests.

    A topic that is interned later has no record of a manifest below those ends. The cut includes
    the changes of the log since ``before``. Recreated topics may be ``accepted`` once a run has
    reported what is missing from them.
    """
    require_readable(log_reader, progress_topic)
    progress = log_reader.partitions([progress_topic])
    manifest_ends = log_reader.offsets(progress, LogEnd.LAST_STABLE)
    manifest_starts = log_reader.offsets(progress, LogEnd.START)
    wanted = [topic for topic in topics() if topic != progress_topic]
    described = log_reader.describe(wanted)
    data = log_reader.partitions(wanted)
    facts = log_history.facts_in(described)
    recreated = log_history.recreated_topics(before, facts)
    judged = {topic for topic in recreated if before.reported.get(topic) == facts[topic].id}
    highs = log_reader.offsets([*data, *progress], LogEnd.HIGH_WATERMARK)
    stable, stalled = _stable_ends(log_reader, highs, clock, pause)
    ends, starts = _answers_for(data, stable), log_reader.offsets(data, LogEnd.START)
    log = cut_plan.LogCut(
        progress_topic=progress_topic,
        manifests=cut_plan.ranges(manifest_starts, manifest_ends),
        records=cut_plan.ranges(starts, ends),
        gaps=(
            *cut_plan.gone_manifests(progress_topic, before, progress),
            *cut_plan.gaps(progress, (manifest_starts, manifest_ends), _only(progress, stalled)),
            *cut_plan.gaps(data, (_answers_for(data, highs), starts, ends), _only(data, stalled)),
        ),
        topics=log_history.facts_in(described),
        accepted=frozenset(judged & {*accepted}),
        former_ids={t: before.topic_ids[t] for t in recreated - (judged & {*accepted})},
    )
    return _with_history(before.without(recreated), log, log_reader, described, wanted)


def require_readable(log_reader: KafkaLogReader, topic: str) -> None:
    """Raise KafkaForbidden if this principal lacks a right without which the topic looks empty."""
    missing = log_reader.describe([topic]).get(topic)
    if isinstance(missing, str):
        raise KafkaForbidden(missing)


def _with_history(
    before: LogState,
    log: cut_plan.LogCut,
    log_reader: KafkaLogReader,
    described: Mapping[str, TopicFacts | str],
    wanted: Collection[str],
) -> cut_plan.LogCut:
    """Return the cut with the changes of the log."""
    gaps = log_history.unreadable_ranges(before, described, wanted, log.records)
    unread = {each.partition for each in gaps if each.cause != "UNVERIFIABLE/expired"}
    readable = tuple(
        each
        for each in log.records
        if unread.isdisjoint((each.partition, Partition(each.partition.topic, WHOLE_TOPIC)))
    )
    found = log_reader.next_records(log_history.anchors_to_read(before, readable))
    changes = log_history.changes(before, log.topics, readable, found)
    changes += log_history.recreations(log)
    return replace(log, records=readable, gaps=(*log.gaps, *gaps), changes=changes, before=before)


def _answers_for(partitions: Collection[Partition], answers: Offsets) -> Offsets:
    wanted = {*partitions}
    return Offsets(
        offsets={p: offset for p, offset in answers.offsets.items() if p in wanted},
        errors={p: error for p, error in answers.errors.items() if p in wanted},
    )


def _only(partitions: Collection[Partition], stalled: Sequence[Partition]) -> list[Partition]:
    wanted = {*partitions}
    return [each for each in stalled if each in wanted]


def _stable_ends(
    log_reader: KafkaLogReader, highs: Offsets, clock: Clock, pause: Callable[[float], object]
) -> tuple[Offsets, tuple[Partition, ...]]:
    """Wait until every transaction below the high watermarks has ended; return those still open."""
    deadline = clock.monotonic() + cut_plan.STABLE_WAIT_SECONDS
    stable = log_reader.offsets(list(highs.offsets), LogEnd.LAST_STABLE)
    while (stalled := cut_plan.open_transactions(highs, stable)) and clock.monotonic() < deadline:
        pause(PAUSE_SECONDS)
        stable = log_reader.offsets(list(highs.offsets), LogEnd.LAST_STABLE)
    return stable, stalled
