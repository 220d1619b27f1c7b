"""Counts what producers do: messages stored, decisions, conflicts, and how long deciding took.

Each message has a line of its own only where debug lines are written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from api.ingest.answers import words
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
from outbox.telemetry.events import Event, debug_logger
from outbox.telemetry.metrics import Metrics


class IngestMetrics:
    """The ingest's counters; a failure to name a label never fails a request."""

    def __init__(self, metrics: Metrics, directory: NameCache) -> None:
        self._metrics = metrics
        self._directory = directory
        self._debug = debug_logger()
        self._durations: dict[tuple[Resolution, DecidedBy], Any] = {}

    def prepared(self, outcomes: Sequence[PrepareOutcome]) -> None:
        """Count the messages that a flush stored; replays are not stored again."""
        fresh = [item.half for item in outcomes if isinstance(item, Prepared) and not item.replayed]
        stored = Counter(half.message.producer_group for half in fresh)
        for group, number in stored.items():
            self._metrics["half_prepared_total"].labels(group).inc(number)
        if self._debug is not None:
            for half in fresh:
                self._debug.debug(
                    Event.HALF_PREPARED,
                    message_id=str(half.message_id),
                    producer_group=half.message.producer_group,
                )

    async def ended(self, outcomes: Sequence[EndOutcome]) -> None:
        """Count the decisions that a flush made, and the ends that contradict one."""
        ended = [item for item in outcomes if isinstance(item, Ended) and item.standing.op]
        self._observe_resolutions(ended)
        counted = Counter(
            (item.conflict, item.standing.producer_group_id, words(item.standing))
            for item in ended
            if item.conflict or not item.already_ended
        )
        if not counted:
            return
        names = await self._directory.group_names({group for _, group, _ in counted})
        for (conflict, group, labels), number in counted.items():
            metric = "end_conflicts_total" if conflict else "half_ended_total"
            self._metrics[metric].labels(names.get(group, ""), *labels).inc(number)
        if self._debug is not None:
            for item in ended:
                if not item.already_ended:
                    self._tell(item.standing, names)

    def _tell(self, standing: MessageStatus, names: Mapping[int, str]) -> None:
        assert self._debug is not None
        decision, decided_by = words(standing)
        self._debug.debug(
            Event.HALF_ENDED,
            message_id=str(standing.message_id),
            producer_group=names.get(standing.producer_group_id, ""),
            decision=decision,
            decided_by=decided_by,
        )

    def _observe_resolutions(self, ended: Sequence[Ended]) -> None:
        for standing in [item.standing for item in ended if not item.already_ended]:
            op, prepared_at = standing.op, standing.prepared_at
            if op is None or prepared_at is None:
                continue
            key = (op.decision, op.decided_by)
            series = self._durations.get(key)
            if series is None:
                durations = self._metrics["half_resolution_duration_seconds"]
                series = self._durations[key] = durations.labels(*words(standing))
            series.observe((op.decided_at - prepared_at).total_seconds())
