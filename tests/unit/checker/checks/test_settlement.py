from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from checker.checks.settlement import settlement_of
from outbox.checks.answer import CheckAnswer, Outcome
from outbox.checks.check_round import QueueRow, Settlement
from outbox.checks.producer_group import OnCheckMax, ProducerGroup
from outbox.messages.message import ParkedReason
from tests.fixtures_messages import make_group
from tests.unit.checker.checks.fixtures_queue_rows import NOW, make_row, make_slice


def settled(
    *finished: QueueRow,
    group: ProducerGroup | None = None,
    rows: tuple[QueueRow, ...] = (),
) -> Settlement:
    due = make_slice(*(rows or finished), group=group, now=NOW)
    return settlement_of(due, finished, lambda: 0.5)


def answered(row: QueueRow, outcome: Outcome, **fields: Any) -> QueueRow:
    return replace(row, answer=CheckAnswer(outcome=outcome, **fields))


@pytest.mark.parametrize(
    ("answer", "check_count", "only_unknown"),
    [
        (CheckAnswer(outcome=Outcome.UNKNOWN, http_status=200), 5, True),
        (CheckAnswer(outcome=Outcome.BAD_VERDICT, http_status=200), 5, False),
        (CheckAnswer(outcome=Outcome.HTTP_ERROR, http_status=500), 5, False),
        (CheckAnswer(outcome=Outcome.HTTP_ERROR, http_status=503), 4, True),
        (CheckAnswer(outcome=Outcome.TIMEOUT), 4, True),
    ],
    ids=lambda value: (
        f"{value.outcome} {value.http_status}" if isinstance(value, CheckAnswer) else ""
    ),
)
def test_an_answer_without_verdict_is_spent_and_silence_is_not(
    answer: CheckAnswer, check_count: int, only_unknown: bool
) -> None:
    row = make_row(check_count=4, answer=answer)
    settlement = settled(row)
    assert settlement.ends == ()
    assert settlement.put_backs == (
        replace(row, check_count=check_count, only_unknown=only_unknown, delay_seconds=30),
    )
    assert settlement.checks == (row,)


def test_the_endpoint_may_ask_for_a_later_check() -> None:
    settlement = settled(answered(make_row(), Outcome.UNKNOWN, retry_after_seconds=45))
    assert [back.delay_seconds for back in settlement.put_backs] == [45]


def test_parking_carries_its_reason_and_round() -> None:
    row = make_row(check_count=15, round=3)
    settlement = settled(row)
    assert settlement.parkings == ((row, ParkedReason.CHECK_MAX),)


def test_the_policy_never_decides_for_a_half_that_cannot_be_read() -> None:
    group = make_group(on_check_max=OnCheckMax.ROLLBACK)
    settlement = settled(make_row(half=None, check_count=15), group=group)
    assert (settlement.ends, len(settlement.parkings)) == ((), 1)


def test_ends_are_in_the_order_in_which_their_answers_arrived() -> None:
    rows = tuple(make_row(look_id) for look_id in (1, 2, 3))
    arrived = [answered(rows[n], Outcome.COMMIT) for n in (2, 0, 1)]
    settlement = settled(*arrived, rows=rows)
    assert [end.half_id for end in settlement.ends] == [rows[n].half_id for n in (2, 0, 1)]
    assert list(settlement.checks) == arrived


def test_a_cursor_stops_before_the_first_row_that_is_not_done() -> None:
    rows = (make_row(1), make_row(2), make_row(3), make_row(9, delay_seconds=60))
    done = [answered(rows[n], Outcome.COMMIT) for n in (0, 2, 3)]
    settlement = settled(*done, rows=rows)
    assert settlement.moves == {30: (0, 1), 60: (0, 9)}
    assert [end.half_id for end in settlement.ends] == [rows[0].half_id, rows[3].half_id]
