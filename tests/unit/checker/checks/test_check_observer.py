"""The gauges of a group vanish with its queue."""

from __future__ import annotations

from checker.checks.check_observer import CheckObserver
from outbox.checks.breaker import BreakerState
from outbox.checks.check_round import GroupDue
from outbox.telemetry.metrics import Metrics


def shown(metrics: Metrics) -> set[tuple[str, str, float]]:
    """Return metric, group and value of the gauges of queues."""
    return {
        (family.name, sample.labels["producer_group"], sample.value)
        for family in metrics.registry.collect()
        if family.name in ("outbox_check_schedule_lag_seconds", "outbox_check_breaker_state")
        for sample in family.samples
    }


def due(name: str, overdue_seconds: float, breaker: BreakerState) -> GroupDue:
    return GroupDue(
        producer_group_id=1, producer_group=name, overdue_seconds=overdue_seconds, breaker=breaker
    )


def test_the_gauges_of_a_group_whose_queue_is_empty_vanish() -> None:
    metrics = Metrics()
    observer = CheckObserver(metrics)
    observer.due(
        [due("shop", 7.0, BreakerState.OPEN), due("billing", -3.0, BreakerState.CLOSED)],
    )
    assert shown(metrics) == {
        ("outbox_check_schedule_lag_seconds", "shop", 7.0),
        ("outbox_check_breaker_state", "shop", 2.0),
        ("outbox_check_schedule_lag_seconds", "billing", 0.0),
        ("outbox_check_breaker_state", "billing", 0.0),
    }
    observer.due([due("billing", 1.0, BreakerState.CLOSED)])
    assert {group for _, group, _ in shown(metrics)} == {"billing"}
    observer.due([])
    assert shown(metrics) == set()
