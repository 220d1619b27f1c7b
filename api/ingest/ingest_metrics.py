"""Counts stored messages, decisions and conflicts, and measures the time to a decision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from api.ingest.name_cache import NameCache
from outbox.messages.message import (
    DecidedBy,
    Ended,
    EndOutcome,
    OpMessage,
    Prepared,
    PrepareOutcome,
    Resolution,
)
from outbox.telemetry.metrics import Metrics


class IngestMetrics:
    """The counters of prepare and end; an unknown label name never fails a request."""

    def __init__(self, metrics: Metrics, name_cache: NameCache) -> None:
        self._metrics = metrics
        self._names = name_cache
        self._durations: dict[tuple[Resolution, DecidedBy], Any] = {}

    def prepared(self, outcomes: Sequence[PrepareOutcome], key_id: str) -> None:
        """Count what a flush stored for the key whose rates it spends; replays do not count."""
        counts = Counter(
            item.half.message.producer_group
            for item in outcomes
            if isinstance(item, Prepared) and not item.replayed
        )
        prepared = self._metrics["half_prepared_total"]
        for group, number in counts.items():
            prepared.labels(group, key_id).inc(number)

    async def ended(self, outcomes: Sequence[EndOutcome]) -> None:
        """Count and time the decisions that a flush made; count the ends that contradict one."""
        counts: Counter[tuple[str, int, Resolution, DecidedBy]] = Counter()
        for item in outcomes:
            if not isinstance(item, Ended) or (op := item.status.op) is None:
                continue
            if not item.already_ended:
                self._observe(op, item.status.resolution_seconds or 0.0)
            elif not item.conflict:
                continue
            metric = "end_conflicts_total" if item.conflict else "half_ended_total"
            counts[metric, item.status.producer_group_id, op.decision, op.decided_by] += 1
        names = await self._names.group_names({group for _, group, _, _ in counts})
        for (metric, group, decision, decided_by), number in counts.items():
            labels = (names.get(group, ""), decision.value, decided_by.value)
            self._metrics[metric].labels(*labels).inc(number)

    def _observe(self, op: OpMessage, seconds: float) -> None:
        kind = (op.decision, op.decided_by)
        series = self._durations.get(kind)
        if series is None:
            durations = self._metrics["half_resolution_duration_seconds"]
            series = self._durations[kind] = durations.labels(*kind)
        series.observe(seconds)
