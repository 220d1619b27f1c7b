"""Counts stored messages, decisions and conflicts, and measures the time to a decision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Final

from api.ingest.name_cache import NameCache
from outbox.messages.message import (
    DecidedBy,
    Ended,
    EndOutcome,
    Prepared,
    PrepareOutcome,
    Resolution,
)
from outbox.telemetry.metrics import Metrics

DURATION: Final = "half_resolution_duration_seconds"


class IngestMetrics:
    """The counters of prepare and end; an unknown label name never fails a request."""

    def __init__(self, metrics: Metrics, name_cache: NameCache) -> None:
        self._names = name_cache
        self._series = cache(lambda name, *labels: metrics[name].labels(*labels))
        """The series by metric and labels: to find one takes longer than to count."""

    def prepared(self, outcomes: Sequence[PrepareOutcome], key_id: str) -> None:
        """Count what a flush stored for the key whose rates it spends; replays do not count."""
        counts = Counter(
            item.half.message.producer_group
            for item in outcomes
            if isinstance(item, Prepared) and not item.replayed
        )
        for group, number in counts.items():
            self._series("half_prepared_total", group, key_id).inc(number)

    async def ended(self, outcomes: Sequence[EndOutcome]) -> None:
        """Count and time the decisions that a flush made; count the ends that contradict one."""
        counts: Counter[tuple[str, int, Resolution, DecidedBy]] = Counter()
        for item in outcomes:
            if not isinstance(item, Ended) or (op := item.status.op) is None:
                continue
            if not item.already_ended:
                duration = self._series(DURATION, op.decision, op.decided_by)
                duration.observe(item.status.resolution_seconds or 0.0)
            elif not item.conflict:
                continue
            metric = "end_conflicts_total" if item.conflict else "half_ended_total"
            counts[metric, item.status.producer_group_id, op.decision, op.decided_by] += 1
        names = await self._names.group_names({group for _, group, _, _ in counts})
        for (metric, group, decision, decided_by), number in counts.items():
            self._series(metric, names.get(group, ""), decision, decided_by).inc(number)
