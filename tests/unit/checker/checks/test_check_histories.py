"""Whole schedules of checks, on the functions that the checker runs."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from checker.checks.settlement import settlement_of
from outbox.checks.answer import CheckAnswer, Outcome
from outbox.checks.policy import Decision, decide
from outbox.checks.producer_group import ProducerGroup
from outbox.messages.message import ParkedReason
from tests.fixtures_messages import make_group
from tests.unit.checker.checks.fixtures_queue_rows import make_row, make_slice

BORN = datetime(2026, 1, 1, tzinfo=UTC)
UNKNOWN = CheckAnswer(outcome=Outcome.UNKNOWN, http_status=200)


def until_parked(group: ProducerGroup, immunity_seconds: int) -> tuple[list[int], int]:
    """Answer UNKNOWN to all checks; return their times and that of the parking, in seconds."""
    now, asked = BORN + timedelta(seconds=immunity_seconds), list[int]()
    row = make_row(delay_seconds=0, age_from=BORN)
    while True:
        at = int((now - BORN).total_seconds())
        is_asked = decide(row, group, now) is Decision.ASK
        row = replace(row, answer=UNKNOWN if is_asked else None)
        due = make_slice(row, group=group, now=now)
        settlement = settlement_of(due, [row], lambda: 0.0)
        asked += [at] * len(settlement.checks)
        if settlement.parkings:
            assert settlement.parkings[0][1] is ParkedReason.CHECK_MAX
            return asked, at
        (back,) = settlement.put_backs
        assert back.check_count == len(asked)
        now += timedelta(seconds=back.delay_seconds)
        row = replace(back, delay_seconds=0)


@pytest.mark.parametrize(("interval", "last", "parked"), [(60, 846, 906), (30, 426, 456)])
def test_the_queue_keeps_the_schedules_of_rocketmq_4_and_5_exactly(
    interval: int, last: int, parked: int
) -> None:
    """15 checks at 6, 6 + interval, …; parked at the look after the fifteenth."""
    asked, at = until_parked(make_group(check_interval_seconds=interval), 6)
    assert asked == list(range(6, last + 1, interval))
    assert at == parked


def test_d5_immunity_spends_no_check_and_all_fifteen_follow() -> None:
    asked, _ = until_parked(make_group(), 600)
    assert (asked[0], len(asked)) == (600, 15)
