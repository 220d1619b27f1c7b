"""The schedule of a half that stays undecided, with the time set by the test."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from checker.checks.settlement import settlement_of
from outbox.checks.check_round import Answer, CheckResult, Outcome
from outbox.checks.policy import Ask, Decision, decide, immunity
from outbox.checks.producer_group import OnCheckMax, ProducerGroup
from tests.fixtures_messages import make_group
from tests.unit.checker.checks.fixtures_queue_rows import NOW, make_row, make_slice

UNKNOWN = Answer(outcome=Outcome.UNKNOWN, http_status=200)
SILENCE = Answer(outcome=Outcome.UNREACHABLE)


def walk(
    group: ProducerGroup, answer: Answer, looks: int, own_immunity: int | None = None
) -> list[tuple[float, Decision, int]]:
    """Return each decision, its time in seconds after prepare, and the number of the attempt."""
    row = make_row(due_at=NOW + immunity(group, own_immunity))
    history = []
    for look_id in range(1, looks + 1):
        now = row.due_at
        decision = decide(row, group, now)
        history.append(((now - NOW).total_seconds(), decision, row.attempt))
        if not isinstance(decision, Ask):
            break
        result = CheckResult(row=row, decision=decision, answer=answer, asked_at=now)
        due = make_slice(row, group=group, now=now)
        (back,) = settlement_of(due, [result], lambda: 0.5).put_backs
        row = replace(
            back,
            look_id=look_id + 1,
            delay_seconds=row.delay_seconds,
            due_at=now + timedelta(seconds=back.delay_seconds),
        )
    return history


@pytest.mark.parametrize(
    ("interval", "last_check", "parked"), [(60, 846, 906), (30, 426, 456)], ids=["4.x", "5.x"]
)
def test_a38_checks_follow_rocketmqs_schedule_and_end_in_parking(
    interval: int, last_check: int, parked: int
) -> None:
    history = walk(make_group(check_interval_seconds=interval), UNKNOWN, looks=100)
    at = [seconds for seconds, *_ in history]
    assert at == [*range(6, last_check + 1, interval), parked]
    assert [type(decision).__name__ for _, decision, _ in history] == ["Ask"] * 15 + ["Park"]
    assert [attempt for *_, attempt in history[:-1]] == list(range(1, 16))


def test_d5_immunity_spends_no_check_and_all_fifteen_follow() -> None:
    history = walk(make_group(), UNKNOWN, looks=100, own_immunity=600)
    assert (history[0], len(history)) == ((600, Ask(), 1), 16)


def test_silence_is_never_spent_and_only_age_ends_it() -> None:
    history = walk(make_group(on_check_max=OnCheckMax.ROLLBACK), SILENCE, looks=20_000)
    *asked, (end, last, _) = history
    assert {(decision, attempt) for _, decision, attempt in asked} == {(Ask(), 1)}
    assert (type(last).__name__, 259_200 <= end < 259_230) == ("Park", True)


@pytest.mark.parametrize(
    ("answer", "last"),
    [
        (UNKNOWN, "RollBack"),
        (Answer(outcome=Outcome.BAD_VERDICT), "Park"),
        (Answer(outcome=Outcome.HTTP_ERROR, http_status=500), "Park"),
    ],
    ids=["unknown", "bad verdict", "500"],
)
def test_the_rollback_policy_acts_on_valid_unknowns_alone(answer: Answer, last: str) -> None:
    fields: dict[str, Any] = {"on_check_max": OnCheckMax.ROLLBACK, "check_max": 3}
    history = walk(make_group(**fields), answer, looks=10)
    assert [type(decision).__name__ for _, decision, _ in history] == ["Ask"] * 3 + [last]
