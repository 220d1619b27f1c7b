"""Whole histories of checks, on the functions that the checker runs, compared with an oracle.

The oracle counts in seconds and has the rules of spending as a table; it shares no code with the
policy. A history is the endpoint's answer to each check, and the delay of each check.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checker.checks.settlement import settlement_of
from outbox.checks.answer import Answer, Outcome
from outbox.checks.check_round import QueueRow, Settlement
from outbox.checks.policy import Decision, decide
from outbox.checks.producer_group import Backoff, OnCheckMax, ProducerGroup
from tests.fixtures_messages import make_group
from tests.unit.checker.checks.fixtures_queue_rows import make_row, make_slice

BORN = datetime(2026, 1, 1, tzinfo=UTC)
DAY, HOUR = 86_400, 3600

SPENT = {
    (Outcome.UNKNOWN, 200): True,
    (Outcome.BAD_VERDICT, 200): True,
    (Outcome.HTTP_ERROR, 404): True,
    (Outcome.HTTP_ERROR, 500): True,
    (Outcome.HTTP_ERROR, 429): False,
    (Outcome.HTTP_ERROR, 410): False,
    (Outcome.HTTP_ERROR, 502): False,
    (Outcome.HTTP_ERROR, 503): False,
    (Outcome.HTTP_ERROR, 504): False,
    (Outcome.TIMEOUT, None): False,
    (Outcome.UNREACHABLE, None): False,
    (Outcome.BLOCKED, None): False,
}
"""Every answer without a verdict, and whether it counts toward ``check_max``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One look: how late it comes, and what would be answered."""

    late: int = 0
    answer: Answer = Answer(outcome=Outcome.UNKNOWN, http_status=200)  # noqa: RUF009
    jitter: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A check: when, in seconds after prepare, and as which counted attempt."""

    at: int
    attempt: int


End = str
"""``COMMIT``, ``ROLLBACK``, ``policy``, ``check_max``, ``max_age``, or ``open``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What a history made of a half: its checks, the delays between looks, the end and its time."""

    asked: tuple[Asked, ...]
    delays: tuple[int, ...]
    end: End
    at: int
    spent: int


ANSWERS = st.builds(
    lambda kind, retry: Answer(outcome=kind[0], http_status=kind[1], retry_after_seconds=retry),
    st.sampled_from(list(SPENT)),
    st.one_of(st.none(), st.integers(0, 2 * DAY)),
)
VERDICTS = st.sampled_from([Outcome.COMMIT, Outcome.ROLLBACK]).map(
    lambda outcome: Answer(outcome=outcome, http_status=200)
)
TURNS = st.builds(
    Turn,
    late=st.one_of(st.just(0), st.integers(0, 200)),
    answer=st.one_of(ANSWERS, ANSWERS, ANSWERS, VERDICTS),
    jitter=st.floats(0, 1, exclude_max=True),
)
GROUPS = st.builds(
    make_group,
    check_interval_seconds=st.one_of(st.integers(1, 120), st.integers(1, DAY)),
    check_max=st.integers(1, 20),
    transaction_timeout_seconds=st.integers(1, HOUR),
    on_check_max=st.sampled_from(OnCheckMax),
    backoff=st.sampled_from(Backoff),
    max_age_seconds=st.one_of(st.integers(60, 3 * DAY), st.just(30 * DAY)),
)
HISTORIES = st.lists(TURNS, max_size=40)
MANY = settings(derandomize=True, max_examples=200, deadline=None)


# -- The functions that the checker runs ----------------------------------------------------------


def play(group: ProducerGroup, own_immunity: int | None, turns: Sequence[Turn]) -> Played:
    """Play a history on ``decide`` and ``settlement_of``."""
    due_at = BORN + timedelta(seconds=own_immunity or group.transaction_timeout_seconds)
    row = make_row(delay_seconds=0, age_from=BORN)
    asked, delays, at = list[Asked](), list[int](), _seconds(due_at)
    for turn in turns:
        now = due_at + timedelta(seconds=turn.late)
        at = _seconds(now)
        is_asked = decide(row, group, now) is Decision.ASK
        row = replace(row, answer=turn.answer if is_asked else None)
        due = make_slice(row, group=group, now=now)
        settlement = settlement_of(due, [row], partial(float, turn.jitter))
        asked += [Asked(at=at, attempt=each.attempt) for each in settlement.checks]
        if not settlement.put_backs:
            return Played(
                asked=tuple(asked),
                delays=tuple(delays),
                end=_end_of(settlement),
                at=at,
                spent=_spent(row, settlement),
            )
        (back,) = settlement.put_backs
        delays.append(back.delay_seconds)
        due_at = now + timedelta(seconds=back.delay_seconds)
        row = replace(back, delay_seconds=row.delay_seconds)
    spent = row.check_count
    return Played(asked=tuple(asked), delays=tuple(delays), end="open", at=at, spent=spent)


def _spent(row: QueueRow, settlement: Settlement) -> int:
    return settlement.parkings[0][0].check_count if settlement.parkings else row.check_count


def _end_of(settlement: Settlement) -> End:
    if settlement.parkings:
        return settlement.parkings[0][1].value
    (end,) = settlement.ends
    return "policy" if end.decided_by.value == "policy" else end.decision.value


def _seconds(at: datetime) -> int:
    return int((at - BORN).total_seconds())


# -- The oracle -----------------------------------------------------------------------------------


def shortest(group: ProducerGroup, spent: int, answer: Answer) -> tuple[int, int]:
    """Return the bounds of the delay after an answer; classes above a minute are 5 % apart."""
    low = high = group.check_interval_seconds
    if group.backoff is Backoff.EXPONENTIAL:
        for _ in range(spent - 1):
            high = min(2 * high, max(HOUR, low))
    retry = answer.retry_after_seconds or 0
    low, high = max(low, retry), max(high, retry)
    exact = low == high == group.check_interval_seconds
    return min(low, DAY), high if exact else min(high * 21 // 20 + 1, DAY)


def expected(
    group: ProducerGroup, own_immunity: int | None, turns: Sequence[Turn], delays: Iterator[int]
) -> Played:
    """Say what must happen, given the delays that were drawn; those are held to their bounds."""
    due, at, spent, honest = own_immunity or group.transaction_timeout_seconds, 0, 0, True
    asked, seen = list[Asked](), list[int]()

    def ended(how: End) -> Played:
        return Played(asked=tuple(asked), delays=tuple(seen), end=how, at=at, spent=spent)

    at = due
    for turn in turns:
        at = due + turn.late
        aged = at >= group.max_age_seconds
        if spent == group.check_max and aged:
            return ended("max_age")
        if spent == group.check_max:
            rolls_back = group.on_check_max is OnCheckMax.ROLLBACK and honest
            return ended("policy" if rolls_back else "check_max")
        asked.append(Asked(at=at, attempt=spent + 1))
        if turn.answer.verdict is not None:
            return ended(turn.answer.verdict.value)
        counts = SPENT[(turn.answer.outcome, turn.answer.http_status)]
        spent += counts
        honest = honest and not (counts and turn.answer.outcome is not Outcome.UNKNOWN)
        if aged:
            return ended("max_age")
        low, high = shortest(group, spent, turn.answer)
        wait = next(delays)
        assert low <= wait <= high, f"{wait} s, not {low} to {high} s"
        seen.append(wait)
        due = at + wait
    return ended("open")


# -- Any history ----------------------------------------------------------------------------------


@MANY
@given(GROUPS, st.one_of(st.none(), st.integers(1, HOUR)), HISTORIES)
def test_any_history_of_a_half_agrees_with_the_oracle(
    group: ProducerGroup, own_immunity: int | None, turns: list[Turn]
) -> None:
    played = play(group, own_immunity, turns)
    assert played == expected(group, own_immunity, turns, iter(played.delays))


@pytest.mark.parametrize(("interval", "last", "parked"), [(60, 846, 906), (30, 426, 456)])
def test_the_queue_keeps_the_schedules_of_rocketmq_4_and_5_exactly(
    interval: int, last: int, parked: int
) -> None:
    """15 checks at 6, 6 + interval, …; parked at the look after the fifteenth."""
    played = play(make_group(check_interval_seconds=interval), None, [Turn()] * 16)
    assert [each.at for each in played.asked] == list(range(6, last + 1, interval))
    assert [each.attempt for each in played.asked] == list(range(1, 16))
    assert (played.end, played.at) == ("check_max", parked)


def test_d5_immunity_spends_no_check_and_all_fifteen_follow() -> None:
    played = play(make_group(), 600, [Turn()] * 16)
    assert (played.asked[0], len(played.asked)) == (Asked(at=600, attempt=1), 15)
