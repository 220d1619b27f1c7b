"""The metrics and log events of check-backs, apart from the rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from outbox.checks.answer import CheckAnswer, Outcome
from outbox.checks.breaker import CLOSES, BreakerState
from outbox.checks.check_round import GroupDue, QueueRow, Settled, Settlement
from outbox.checks.producer_group import ProducerGroup
from outbox.messages.message import End
from outbox.messages.message_id import message_id_of
from outbox.telemetry.events import Event, get_logger, trace_facts
from outbox.telemetry.metrics import Metrics

BREAKER_STATES: Final = (BreakerState.CLOSED, BreakerState.HALF_OPEN, BreakerState.OPEN)
"""In the order of the metric's values."""
SKIPPED: Final = "skipped"
"""The outcome of a half that could not be asked about."""


class CheckObserver:
    """Counts and logs the check-backs of this process."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._shown: set[str] = set()
        """The groups whose queue the gauges show."""
        self._log = get_logger()

    @contextmanager
    def on_the_wire(self, group: ProducerGroup) -> Iterator[None]:
        """Count a call as in flight for the block."""
        gauge = self._metrics["check_inflight"].labels(group.name)
        gauge.inc()
        try:
            yield
        finally:
            gauge.dec()

    def called(
        self,
        group: ProducerGroup,
        first: QueueRow,
        answers: Sequence[CheckAnswer],
        seconds: float,
    ) -> None:
        """Note one call and its answer for each message."""
        for answer in answers:
            labels = (group.name, answer.outcome.value)
            self._metrics["checks_total"].labels(*labels).inc()
            self._metrics["check_duration_seconds"].labels(*labels).observe(seconds)
            if answer.outcome is Outcome.BLOCKED:
                self._blocked(group, first, answer)
            self._log.debug(
                Event.CHECK_DONE,
                producer_group=group.name,
                outcome=answer.outcome.value,
                http_status=answer.http_status,
                error=answer.error,
            )

    def skipped(self, group: ProducerGroup, row: QueueRow, error: str) -> None:
        """Note a half that could not be asked about; it is put back and delays no other."""
        self._metrics["checks_total"].labels(group.name, SKIPPED).inc()
        self._log.error(
            Event.CHECK_DONE,
            producer_group=group.name,
            half_id=row.half_id,
            message_id=row.message_id,
            outcome=SKIPPED,
            error=error,
        )

    def settled(self, settlement: Settlement, settled: Settled) -> None:
        """Note the stored results of a round."""
        group = settlement.group
        for place, end in enumerate(settlement.ends):
            self._ended(group, end, settled.resolution_seconds.get(place))
            if place in settled.conflicts:
                self._count("end_conflicts_total", group, end)
        for row, reason in settlement.parkings:
            if row.half_id in settled.parked:
                self._metrics["half_parked_total"].labels(group.name).inc()
                self._log.warning(
                    Event.HALF_PARKED,
                    producer_group=group.name,
                    message_id=row.message_id,
                    **trace_facts(row.half.message.traceparent if row.half else None),
                    reason=reason.value,
                    check_count=row.check_count,
                )
        if settlement.pause_reason is not None:
            self._log.error(
                Event.GROUP_CHANGED,
                producer_group=group.name,
                paused=True,
                reason=settlement.pause_reason,
            )
        if settlement.breaker_wait_seconds is not None and settled.breaker_changed:
            self._breaker(group, settlement.breaker_wait_seconds)

    def due(self, groups: Sequence[GroupDue]) -> None:
        """Note the delay of each group's checks behind their schedule (s).

        The gauges of a group without waiting halves vanish.
        """
        for gone in self._shown - {each.producer_group for each in groups}:
            self._metrics["check_schedule_lag_seconds"].remove(gone)
            self._metrics["check_breaker_state"].remove(gone)
        self._shown = {each.producer_group for each in groups}
        for each in groups:
            lag = 0.0 if each.rests else max(each.overdue_seconds, 0.0)
            self._metrics["check_schedule_lag_seconds"].labels(each.producer_group).set(lag)
            state = BREAKER_STATES.index(each.breaker)
            self._metrics["check_breaker_state"].labels(each.producer_group).set(state)

    def _breaker(self, group: ProducerGroup, wait_seconds: int) -> None:
        """Note that the breaker opens, or that it closes because the endpoint answers again."""
        state = BreakerState.CLOSED if wait_seconds == CLOSES else BreakerState.OPEN
        self._metrics["check_breaker_state"].labels(group.name).set(BREAKER_STATES.index(state))
        self._shown.add(group.name)
        self._log.warning(
            Event.BREAKER_CHANGED,
            producer_group=group.name,
            breaker=state.value,
            wait_seconds=wait_seconds or None,
        )

    def _ended(self, group: ProducerGroup, end: End, seconds: float | None) -> None:
        if seconds is None:
            return
        self._count("half_ended_total", group, end)
        self._metrics["half_resolution_duration_seconds"].labels(
            end.decision.value, end.decided_by.value
        ).observe(seconds)
        self._log.debug(
            Event.HALF_ENDED,
            producer_group=group.name,
            message_id=str(message_id_of(end.half_id, end.nonce)),
            decision=end.decision.value,
            decided_by=end.decided_by.value,
        )

    def _count(self, metric: str, group: ProducerGroup, end: End) -> None:
        labels: tuple[Any, ...] = (group.name, end.decision.value, end.decided_by.value)
        self._metrics[metric].labels(*labels).inc()

    def _blocked(self, group: ProducerGroup, first: QueueRow, answer: CheckAnswer) -> None:
        self._metrics["check_ssrf_blocked_total"].labels(answer.error or "").inc()
        self._log.warning(
            Event.CHECK_BLOCKED,
            producer_group=group.name,
            message_id=first.message_id,
            rule=answer.error,
            **trace_facts(first.readable.message.traceparent),
        )
