"""Counts stored messages, decisions and conflicts, and measures the time to a decision."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, TypeVar

from api.ingest.name_cache import NameCache
from outbox.messages.message import (
    DecidedBy,
    Ended,
    EndOutcome,
    MessageStatus,
    Prepared,
    PrepareOutcome,
    Resolution,
)
from outbox.telemetry.metrics import Metrics

KindT = TypeVar("KindT", bound=Hashable)
EndKind = tuple[bool, int, Resolution, DecidedBy]
"""Whether an end contradicts the decision, the id of its group, the decision and its origin."""


class IngestMetrics:
    """The counters of prepare and end; an unknown label name never fails a request."""

    def __init__(self, metrics: Metrics, name_cache: NameCache) -> None:
        self._metrics = metrics
        self._names = name_cache
        self._durations: dict[tuple[str, str], Any] = {}

    def prepared(self, outcomes: Sequence[PrepareOutcome]) -> None:
        """Count the messages that a flush stored; a replay is not counted again."""
        stored = [
            item.half.message.producer_group
            for item in outcomes
            if isinstance(item, Prepared) and not item.replayed
        ]
        prepared = self._metrics["half_prepared_total"]
        for group, number in _counts(stored).items():
            prepared.labels(group).inc(number)

    async def ended(self, outcomes: Sequence[EndOutcome]) -> None:
        """Count the decisions that a flush made, and the ends that contradict one."""
        ended = [item for item in outcomes if isinstance(item, Ended) and item.status.op]
        self._observe_durations(ended)
        counts = _counts([_kind_of(item) for item in ended if not _is_repeated(item)])
        if not counts:
            return
        names = await self._names.group_names({kind[1] for kind in counts})
        for (conflict, group, decision, decided_by), number in counts.items():
            metric = self._metrics["end_conflicts_total" if conflict else "half_ended_total"]
            metric.labels(names.get(group, ""), decision.value, decided_by.value).inc(number)

    def _observe_durations(self, ended: Sequence[Ended]) -> None:
        durations = self._metrics["half_resolution_duration_seconds"]
        for status in [item.status for item in ended if not item.already_ended]:
            seconds = status.resolution_seconds
            if seconds is not None:
                labels = _decision_labels(status)
                series = self._durations.get(labels)
                if series is None:
                    series = self._durations[labels] = durations.labels(*labels)
                series.observe(seconds)


def _decision_labels(status: MessageStatus) -> tuple[str, str]:
    assert status.op is not None
    return status.op.decision.value, status.op.decided_by.value


def _counts(kinds: Iterable[KindT]) -> dict[KindT, int]:
    """Count equal values; for a flush of one this is a third of a Counter's time."""
    counts: dict[KindT, int] = {}
    for kind in kinds:
        counts[kind] = counts.get(kind, 0) + 1
    return counts


def _kind_of(item: Ended) -> EndKind:
    op = item.status.op
    assert op is not None
    return (item.conflict, item.status.producer_group_id, op.decision, op.decided_by)


def _is_repeated(item: Ended) -> bool:
    return item.already_ended and not item.conflict
