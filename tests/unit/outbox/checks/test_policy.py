"""When a half is checked, put back, parked or rolled back."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outbox.checks.policy import Decision, decide, interval_after
from outbox.checks.producer_group import Backoff, OnCheckMax
from tests.fixtures_messages import make_group
from tests.unit.checker.checks.fixtures_queue_rows import NOW, make_row

MAX_AGE = timedelta(seconds=259_200)


@pytest.mark.parametrize(
    ("only_unknown", "policy", "expected"),
    [
        (True, OnCheckMax.PARK, Decision.PARK_FOR_CHECKS),
        (True, OnCheckMax.ROLLBACK, Decision.ROLL_BACK),
        (False, OnCheckMax.ROLLBACK, Decision.PARK_FOR_CHECKS),
    ],
)
def test_after_check_max_the_groups_policy_decides(
    only_unknown: bool, policy: OnCheckMax, expected: Decision
) -> None:
    row = make_row(check_count=15, only_unknown=only_unknown)
    assert decide(row, make_group(on_check_max=policy), NOW) is expected


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
