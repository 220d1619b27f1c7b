"""The gauges of a group vanish with its queue."""

from __future__ import annotations

import pytest

from checker.checks.check_observer import CheckObserver
from outbox.checks.breaker import BreakerState
from outbox.checks.check_round import Answer, GroupDue, Outcome
from outbox.telemetry.metrics import Metrics
from tests.fixtures_messages import make_group
from tests.unit.checker.checks.fixtures_queue_rows import make_half, make_row


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


def test_a_blocked_check_is_counted_by_its_rule_and_names_the_trace_of_its_message(
    capsys: pytest.CaptureFixture[str],
) -> None:
    trace = "0af7651916cd43dd8448eb211c80319c"
    half = make_half(traceparent=f"00-{trace}-b7ad6b7169203331-01")
    blocked = Answer(outcome=Outcome.BLOCKED, error="private")
    metrics = Metrics()
    CheckObserver(metrics).called(make_group(), make_row(half=half), [blocked], 0.1)
    counted = "outbox_check_ssrf_blocked_total"
    assert metrics.registry.get_sample_value(counted, {"rule": "private"}) == 1
    logged = "".join(capsys.readouterr())
    assert "check_blocked" in logged
    assert f"trace_id={trace}" in logged
