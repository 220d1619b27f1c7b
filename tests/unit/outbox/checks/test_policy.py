"""When a half is checked, put back, parked or rolled back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outbox.checks.policy import (
    Ask,
    Decision,
    Park,
    RollBack,
    Wait,
    decide,
    immunity,
    interval_after,
)
from outbox.checks.producer_group import Backoff, OnCheckMax
from outbox.checks.queue_row import QueueRow
from outbox.messages.message import ParkedReason
from outbox.messages.message_id import HalfId
from tests.fixtures_messages import make_group

BORN = datetime(2026, 1, 1, tzinfo=UTC)


def waiting(count: int = 0, *, due: float = 6, only_unknown: bool = True) -> QueueRow:
    return QueueRow(
        look_id=1,
        delay_seconds=30,
        half_id=HalfId(1 << 15),
        round=1,
        check_count=count,
        only_unknown=only_unknown,
        age_from=BORN,
        due_at=BORN + timedelta(seconds=due),
    )


def at(seconds: float) -> datetime:
    return BORN + timedelta(seconds=seconds)


def test_a_half_within_immunity_is_not_checked() -> None:
    assert decide(waiting(), make_group(), at(5.5)) == Wait(delay=timedelta(seconds=0.5))


def test_a_half_that_waits_since_before_the_clock_was_set_back_waits_once_more() -> None:
    assert decide(waiting(due=3600), make_group(), at(0)) == Wait(delay=timedelta(seconds=30))


def test_at_the_exact_due_instant_a_half_is_checked() -> None:
    """D24."""
    assert decide(waiting(), make_group(), at(6)) == Ask()


@pytest.mark.parametrize(
    ("only_unknown", "policy", "expected"),
    [
        (True, OnCheckMax.PARK, Park(reason=ParkedReason.CHECK_MAX)),
        (True, OnCheckMax.ROLLBACK, RollBack()),
        (False, OnCheckMax.ROLLBACK, Park(reason=ParkedReason.CHECK_MAX)),
    ],
)
def test_after_check_max_the_groups_policy_decides(
    only_unknown: bool, policy: OnCheckMax, expected: Decision
) -> None:
    group = make_group(on_check_max=policy)
    assert decide(waiting(15, only_unknown=only_unknown), group, at(456)) == expected


@given(st.sampled_from(OnCheckMax), st.integers(0, 15), st.booleans())
def test_age_parks_under_either_policy(policy: OnCheckMax, count: int, paused: bool) -> None:
    """P32, A30."""
    group = make_group(on_check_max=policy, paused=paused)
    assert decide(waiting(count), group, at(259_200)) == Park(reason=ParkedReason.MAX_AGE)


@pytest.mark.parametrize(("interval", "last", "parked"), [(60, 846, 906), (30, 426, 456)])
def test_the_schedules_of_rocketmq_4_and_5(interval: int, last: int, parked: int) -> None:
    """A38: checks at 6, 6 + interval, …; parked when it is due after the fifteenth."""
    group = make_group(check_interval_seconds=interval)
    due, times, half = 6.0, [], waiting()
    while isinstance(answer := decide(half, group, at(due)), Ask):
        times.append(due)
        due += interval_after(group, half.attempt, 0.5).total_seconds()
        half = waiting(half.attempt, due=due)
    assert (times[0], times[1], times[-1], len(times)) == (6, 6 + interval, last, 15)
    assert (due, answer) == (parked, Park(reason=ParkedReason.CHECK_MAX))


@given(st.integers(1, 86_400), st.integers(0, 1000), st.floats(0, 1, exclude_max=True))
def test_exponential_backoff_stays_between_the_interval_and_its_cap(
    interval: int, count: int, jitter: float
) -> None:
    group = make_group(check_interval_seconds=interval, backoff=Backoff.EXPONENTIAL)
    seconds = interval_after(group, count, jitter).total_seconds()
    assert interval <= seconds <= max(3600, interval)


def test_a_messages_own_immunity_replaces_the_groups() -> None:
    """P28."""
    assert immunity(make_group(), 600) == timedelta(seconds=600)
    assert immunity(make_group(transaction_timeout_seconds=9), None) == timedelta(seconds=9)
