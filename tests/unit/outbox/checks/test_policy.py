"""When a half is checked, put back, parked or rolled back."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outbox.checks.policy import (
    Decision,
    class_of_first_check,
    decide,
    delay_after,
    interval_after,
    quantise,
)
from outbox.checks.producer_group import Backoff, OnCheckMax
from tests.fixtures_messages import make_group
from tests.unit.checker.checks.fixtures_queue_rows import NOW, make_row

MAX_AGE = timedelta(seconds=259_200)


@pytest.mark.parametrize("policy", OnCheckMax)
def test_age_parks_under_either_policy(policy: OnCheckMax) -> None:
    """P32: after a question, unless all checks are spent."""
    group = make_group(on_check_max=policy)
    assert decide(make_row(check_count=15), group, NOW + MAX_AGE) is Decision.PARK_FOR_AGE
    assert decide(make_row(check_count=14), group, NOW + MAX_AGE) is Decision.ASK


@given(st.integers(1, 86_400), st.integers(0, 1000), st.floats(0, 1, exclude_max=True))
def test_exponential_backoff_stays_between_the_interval_and_its_cap(
    interval: int, count: int, jitter: float
) -> None:
    group = make_group(check_interval_seconds=interval, backoff=Backoff.EXPONENTIAL)
    seconds = interval_after(group, count, jitter).total_seconds()
    assert interval <= seconds <= max(3600, interval)


def test_delays_up_to_a_minute_stay_exact() -> None:
    assert [quantise(seconds) for seconds in (-1, 0, 1, 37, 60)] == [0, 0, 1, 37, 60]


@pytest.mark.parametrize("seconds", [61, 600, 50_000, 86_400])
def test_longer_delays_are_rounded_up_by_about_five_percent(seconds: int) -> None:
    assert seconds <= quantise(seconds) <= min(seconds * 1.06 + 1, 86_400)


def test_the_groups_own_interval_is_exact_however_long() -> None:
    assert delay_after(timedelta(seconds=4321), 4321, None) == 4321


def test_a_jittered_interval_joins_a_class() -> None:
    assert delay_after(timedelta(seconds=1001), 30, None) == quantise(1001)


@pytest.mark.parametrize(
    ("remaining", "immunity", "delay"),
    [
        (4.97, 6, 5),
        (3598.9, 3600, 3599),
        (-0.1, 1, 0),
        (2.5, 6, 3),
        (900.2, 3600, quantise(901)),
        (3598.9, None, quantise(3599)),
    ],
)
def test_a_first_check_has_an_exact_class_when_its_groups_immunity_was_swept_in_time(
    remaining: float, immunity: int | None, delay: int
) -> None:
    assert class_of_first_check(remaining, immunity) == delay
