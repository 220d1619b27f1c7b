"""The gauges of a group vanish with its queue."""

from __future__ import annotations

from checker.checks.check_observer import CheckObserver
from outbox.checks.breaker import BreakerState
from outbox.checks.check_round import GroupDue
from outbox.telemetry.metrics import Metrics


def due(name: str, overdue_seconds: float, breaker: BreakerState) -> GroupDue:
    return GroupDue(
        producer_group_id=1, producer_group=name, overdue_seconds=overdue_seconds, breaker=breaker
    )


def gauges(metrics: Metrics, group: str) -> list[float | None]:
    """Return the lag and the breaker of a group."""
    names = ("outbox_check_schedule_lag_seconds", "outbox_check_breaker_state")
    return [metrics.registry.get_sample_value(each, {"producer_group": group}) for each in names]


def test_the_gauges_of_a_group_whose_queue_is_empty_vanish() -> None:
    metrics = Metrics()
    observer = CheckObserver(metrics)
    billing = due("billing", -3.0, BreakerState.CLOSED)
    observer.due([due("shop", 7.0, BreakerState.OPEN), billing])
    assert (gauges(metrics, "shop"), gauges(metrics, "billing")) == ([7.0, 2.0], [0.0, 0.0])
    observer.due([billing])
    assert (gauges(metrics, "shop"), gauges(metrics, "billing")) == ([None, None], [0.0, 0.0])
