from __future__ import annotations

from datetime import timedelta

import pytest

from outbox.checks.delays import STEPS, class_of_first_check, delay_after, quantise


def test_delays_up_to_a_minute_stay_exact() -> None:
    assert [quantise(seconds) for seconds in (-1, 0, 1, 37, 60)] == [0, 0, 1, 37, 60]


@pytest.mark.parametrize("seconds", [61, 600, 50_000, 86_400])
def test_longer_delays_are_rounded_up_by_about_five_percent(seconds: int) -> None:
    assert seconds <= quantise(seconds) <= min(seconds * 1.06 + 1, 86_400)


def test_there_are_few_classes() -> None:
    assert len(STEPS) < 160
    assert len({quantise(seconds) for seconds in range(3601)}) < 150


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
