from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from checker.checks.check_result import CheckResult, settlement_of
from outbox.checks.check_round import (
    Answer,
    CursorMove,
    Drop,
    Outcome,
    Parking,
    PutBack,
    QueueRow,
    Settlement,
)
from outbox.checks.policy import CheckBack, Park, RollBack, Wait
from outbox.checks.producer_group import Backoff, ProducerGroup
from outbox.messages.message import DecidedBy, End, ParkedReason, Resolution
from tests.fixtures_messages import make_group
from tests.unit.checker.checks.fixtures_queue_rows import NOW, make_row, make_slice


def settled(
    *findings: CheckResult, group: ProducerGroup | None = None, rows: tuple[QueueRow, ...] = ()
) -> Settlement:
    rows = rows or tuple(finding.row for finding in findings)
    return settlement_of(make_slice(*rows, group=group), findings, lambda: 0.5)


def answered(row: QueueRow, outcome: Outcome, **fields: Any) -> CheckResult:
    return CheckResult(
        row=row,
        look=CheckBack(attempt=row.waiting.check_count + 1),
        answer=Answer(outcome=outcome, **fields),
        asked_at=NOW,
        latency_ms=12,
    )


@pytest.mark.parametrize(
    ("outcome", "decision"),
    [(Outcome.COMMIT, Resolution.COMMIT), (Outcome.ROLLBACK, Resolution.ROLLBACK)],
)
def test_a_verdict_ends_the_half(outcome: Outcome, decision: Resolution) -> None:
    row = make_row()
    settlement = settled(answered(row, outcome, http_status=200, reason="seen"))
    assert row.half is not None
    assert settlement.ends == (
        End(
            half_id=row.half_id,
            nonce=row.half.nonce,
            decision=decision,
            decided_by=DecidedBy.CHECK,
            reason="seen",
        ),
    )
    assert [attempt.place for attempt in settlement.attempts] == [0]
    assert settlement.put_backs == ()


@pytest.mark.parametrize(
    ("answer", "check_count", "only_unknown"),
    [
        (Answer(outcome=Outcome.UNKNOWN, http_status=200), 5, True),
        (Answer(outcome=Outcome.BAD_VERDICT, http_status=200), 5, False),
        (Answer(outcome=Outcome.HTTP_ERROR, http_status=204), 5, False),
        (Answer(outcome=Outcome.HTTP_ERROR, http_status=302), 5, False),
        (Answer(outcome=Outcome.HTTP_ERROR, http_status=404), 5, False),
        (Answer(outcome=Outcome.HTTP_ERROR, http_status=500), 5, False),
        (Answer(outcome=Outcome.HTTP_ERROR, http_status=501), 5, False),
        (Answer(outcome=Outcome.HTTP_ERROR, http_status=410), 4, True),
        (Answer(outcome=Outcome.HTTP_ERROR, http_status=429), 4, True),
        (Answer(outcome=Outcome.HTTP_ERROR, http_status=502), 4, True),
        (Answer(outcome=Outcome.HTTP_ERROR, http_status=503), 4, True),
        (Answer(outcome=Outcome.HTTP_ERROR, http_status=504), 4, True),
        (Answer(outcome=Outcome.TIMEOUT), 4, True),
        (Answer(outcome=Outcome.UNREACHABLE), 4, True),
        (Answer(outcome=Outcome.BLOCKED), 4, True),
    ],
    ids=lambda value: f"{value.outcome} {value.http_status}" if isinstance(value, Answer) else "",
)
def test_an_answer_without_verdict_is_spent_and_silence_is_not(
    answer: Answer, check_count: int, only_unknown: bool
) -> None:
    row = make_row(check_count=4)
    finding = replace(answered(row, Outcome.UNKNOWN), answer=answer)
    settlement = settled(finding)
    assert settlement.ends == ()
    assert settlement.put_backs == (
        PutBack(
            half_id=row.half_id,
            round=1,
            check_count=check_count,
            only_unknown=only_unknown,
            age_from=NOW,
            delay_seconds=30,
        ),
    )
    (attempt,) = settlement.attempts
    assert (attempt.attempt, attempt.look_id, attempt.answer) == (5, row.look_id, answer)


def test_once_an_answer_was_no_unknown_it_stays_known() -> None:
    settlement = settled(answered(make_row(only_unknown=False), Outcome.UNKNOWN))
    assert settlement.put_backs[0].only_unknown is False


def test_a_later_time_that_the_endpoint_asks_for_is_kept() -> None:
    settlement = settled(
        answered(make_row(), Outcome.HTTP_ERROR, http_status=503, retry_after_seconds=45)
    )
    assert settlement.put_backs[0].delay_seconds == 45


def test_exponential_backoff_doubles_with_the_spent_checks() -> None:
    group = make_group(backoff=Backoff.EXPONENTIAL)
    settlement = settled(answered(make_row(check_count=2), Outcome.UNKNOWN), group=group)
    assert 75 <= settlement.put_backs[0].delay_seconds <= 79


def test_a_half_that_could_not_be_asked_is_put_back_unspent() -> None:
    row = make_row(check_count=3)
    settlement = settled(CheckResult(row=row, look=CheckBack(attempt=4)))
    assert (settlement.put_backs[0].check_count, settlement.attempts) == (3, ())


def test_a_dropped_row_leaves_no_trace_but_the_cursor() -> None:
    row = make_row(drop=Drop.DECIDED, half=None)
    assert settled(CheckResult(row=row)) == Settlement(
        group=make_group(), moves=(CursorMove(delay_seconds=30, position=0, to=1),)
    )


def test_a_wait_is_put_back_unspent() -> None:
    row = make_row(check_count=2)
    settlement = settled(CheckResult(row=row, look=Wait(delay=timedelta(seconds=20))))
    assert (settlement.put_backs[0].delay_seconds, settlement.put_backs[0].check_count) == (20, 2)


def test_parking_carries_its_reason_and_round() -> None:
    row = make_row(check_count=15, round=3)
    settlement = settled(CheckResult(row=row, look=Park(reason=ParkedReason.CHECK_MAX)))
    assert row.half is not None
    assert settlement.parkings == (
        Parking(
            half_id=row.half_id,
            message_id=row.half.message_id,
            round=3,
            reason=ParkedReason.CHECK_MAX,
            check_count=15,
        ),
    )


def test_the_policy_rolls_back_by_an_end_of_its_own() -> None:
    settlement = settled(CheckResult(row=make_row(), look=RollBack()))
    assert [(end.decision, end.decided_by) for end in settlement.ends] == [
        (Resolution.ROLLBACK, DecidedBy.POLICY)
    ]
    assert settlement.attempts == ()


def test_the_policy_never_decides_for_a_half_that_cannot_be_read() -> None:
    settlement = settled(CheckResult(row=make_row(half=None), look=RollBack()))
    assert (settlement.ends, len(settlement.parkings)) == ((), 1)


def test_ends_stand_in_the_order_in_which_their_answers_arrived() -> None:
    rows = tuple(make_row(look_id) for look_id in (1, 2, 3))
    arrived = [answered(rows[n], Outcome.COMMIT) for n in (2, 0, 1)]
    settlement = settled(*arrived, rows=rows)
    assert [end.half_id for end in settlement.ends] == [rows[n].half_id for n in (2, 0, 1)]
    assert [attempt.place for attempt in settlement.attempts] == [0, 1, 2]


def test_a_cursor_stops_before_the_first_row_that_is_not_done() -> None:
    rows = (make_row(1), make_row(2), make_row(3), make_row(9, delay_seconds=60))
    done = [answered(rows[n], Outcome.COMMIT) for n in (0, 2, 3)]
    settlement = settled(*done, rows=rows)
    assert settlement.moves == (
        CursorMove(delay_seconds=30, position=0, to=1),
        CursorMove(delay_seconds=60, position=0, to=9),
    )
    assert [end.half_id for end in settlement.ends] == [rows[0].half_id, rows[3].half_id]


def test_410_pauses_the_group() -> None:
    settlement = settled(answered(make_row(), Outcome.HTTP_ERROR, http_status=410))
    assert settlement.pause_reason == "endpoint-gone"


def test_a_half_whose_recheck_met_its_parking_is_resumed() -> None:
    row = make_row(parked=True)
    assert settled(answered(row, Outcome.UNKNOWN)).resumed == (row.half_id,)
