"""Counts stored messages, decisions and conflicts, and measures the time to a decision.

A log line per message is written only when debug logging is on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

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
from outbox.telemetry.events import Event, debug_logger, trace_facts
from outbox.telemetry.metrics import Metrics


class IngestMetrics:
    """The counters of prepare and end; an unknown label name never fails a request."""

    def __init__(self, metrics: Metrics, name_cache: NameCache) -> None:
        self._metrics = metrics
        self._names = name_cache
        self._debug = debug_logger()
        self._durations: dict[tuple[Resolution, DecidedBy], Any] = {}

    def prepared(self, outcomes: Sequence[PrepareOutcome]) -> None:
        """Count the messages that a flush stored; a replay is not counted again."""
        stored = [
            item.half for item in outcomes if isinstance(item, Prepared) and not item.replayed
        ]
        counts = Counter(half.message.producer_group for half in stored)
        for group, number in counts.items():
            self._metrics["half_prepared_total"].labels(group).inc(number)
        if self._debug is not None:
            for half in stored:
                self._debug.debug(
                    Event.HALF_PREPARED,
                    message_id=str(half.message_id),
                    producer_group=half.message.producer_group,
                    **trace_facts(half.message.content.traceparent),
                )

    async def ended(self, outcomes: Sequence[EndOutcome]) -> None:
        """Count the decisions that a flush made, and the ends that contradict one."""
        ended = [item for item in outcomes if isinstance(item, Ended) and item.status.op]
        self._observe_durations(ended)
        counts = Counter(
            (item.conflict, item.status.producer_group_id, _decision_labels(item.status))
            for item in ended
            if item.conflict or not item.already_ended
        )
        if not counts:
            return
        names = await self._names.group_names({group for _, group, _ in counts})
        for (conflict, group, labels), number in counts.items():
            metric = "end_conflicts_total" if conflict else "half_ended_total"
            self._metrics[metric].labels(names.get(group, ""), *labels).inc(number)
        if self._debug is not None:
            for item in ended:
                if not item.already_ended:
                    self._log_ended(item.status, names)

    def _log_ended(self, status: MessageStatus, names: Mapping[int, str]) -> None:
        assert self._debug is not None
        decision, decided_by = _decision_labels(status)
        self._debug.debug(
            Event.HALF_ENDED,
            message_id=str(status.message_id),
            producer_group=names.get(status.producer_group_id, ""),
            decision=decision,
            decided_by=decided_by,
        )

    def _observe_durations(self, ended: Sequence[Ended]) -> None:
        for status in [item.status for item in ended if not item.already_ended]:
            op, prepared_at = status.op, status.prepared_at
            if op is None or prepared_at is None:
                continue
            key = (op.decision, op.decided_by)
            series = self._durations.get(key)
            if series is None:
                durations = self._metrics["half_resolution_duration_seconds"]
                series = self._durations[key] = durations.labels(*_decision_labels(status))
            series.observe((op.decided_at - prepared_at).total_seconds())


def _decision_labels(status: MessageStatus) -> tuple[str, str]:
    assert status.op is not None
    return status.op.decision.value, status.op.decided_by.value
