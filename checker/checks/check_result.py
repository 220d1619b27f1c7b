"""What a round has found out about each due row, and the settlement that follows from it.

Here the rules of spending live: an answer without a verdict is spent, silence is not; a decision
ends the half; whatever else happens, the half is put back and never lost. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil
from typing import Final, assert_never

from outbox.checks.check_round import (
    Answer,
    Attempt,
    CursorMove,
    DueSlice,
    Outcome,
    Parking,
    PutBack,
    QueueRow,
    Settlement,
)
from outbox.checks.delays import delay_after
from outbox.checks.policy import CheckBack, Look, Park, RollBack, Wait, interval_after
from outbox.checks.producer_group import ProducerGroup
from outbox.messages.message import DecidedBy, End, ParkedReason, Resolution

ENDPOINT_GONE: Final = "endpoint-gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """One row that the round is done with.

    ``look`` is None for a dropped row. A CheckBack without an answer could not be asked at all: it
    is put back, nothing is spent.
    """

    row: QueueRow
    look: Look | None = None
    answer: Answer | None = None
    asked_at: datetime | None = None
    latency_ms: int = 0
    call: int = 0
    """Which call of the round brought the answer: a batch is one call."""


def settlement_of(
    due: DueSlice, findings: Sequence[CheckResult], jitter: Callable[[], float]
) -> Settlement:
    """Return everything that the round writes; ``findings`` are in order of arrival (O2).

    A class's cursor passes only rows that are done with every row before them; a finding beyond
    that is left out, so its row is looked at again.
    """
    moves = _moves(due, {(each.row.delay_seconds, each.row.look_id) for each in findings})
    goals = {move.delay_seconds: move.to for move in moves}
    passed = [each for each in findings if each.row.look_id <= goals.get(each.row.delay_seconds, 0)]
    writing = _Writing(due.group, jitter)
    for finding in passed:
        writing.add(finding)
    gone = any(each.answer is not None and each.answer.gone for each in passed)
    return Settlement(
        group=due.group,
        moves=moves,
        ends=tuple(writing.ends),
        attempts=tuple(writing.attempts),
        put_backs=tuple(writing.put_backs),
        parkings=tuple(writing.parkings),
        resumed=tuple(each.row.half_id for each in passed if each.row.parked and each.look),
        pause_reason=ENDPOINT_GONE if gone else None,
    )


def _moves(due: DueSlice, done: set[tuple[int, int]]) -> tuple[CursorMove, ...]:
    goals: dict[int, int] = {}
    stopped: set[int] = set()
    for row in due.rows:
        if (row.delay_seconds, row.look_id) not in done:
            stopped.add(row.delay_seconds)
        elif row.delay_seconds not in stopped:
            goals[row.delay_seconds] = row.look_id
    return tuple(
        CursorMove(delay_seconds=delay, position=due.cursors[delay], to=goal)
        for delay, goal in sorted(goals.items())
    )


class _Writing:
    """The lists of a settlement while they fill."""

    def __init__(self, group: ProducerGroup, jitter: Callable[[], float]) -> None:
        self._group = group
        self._jitter = jitter
        self.ends: list[End] = []
        self.attempts: list[Attempt] = []
        self.put_backs: list[PutBack] = []
        self.parkings: list[Parking] = []

    def add(self, finding: CheckResult) -> None:
        row, look = finding.row, finding.look
        match look:
            case None:
                pass
            case Wait():
                self.put_backs.append(_back(row, ceil(look.delay.total_seconds())))
            case Park():
                self.parkings.append(_parking(row, look.reason))
            case RollBack():
                self._roll_back(row)
            case CheckBack():
                self._checked(finding, look.attempt)
            case _:
                assert_never(look)

    def _roll_back(self, row: QueueRow) -> None:
        if row.half is None:
            self.parkings.append(_parking(row, ParkedReason.CHECK_MAX))
        else:
            self.ends.append(_end(row, Resolution.ROLLBACK, DecidedBy.POLICY, None))

    def _checked(self, finding: CheckResult, attempt: int) -> None:
        row, answer = finding.row, finding.answer
        if answer is None or finding.asked_at is None:
            self.put_backs.append(_back(row, self._group.check_interval_seconds))
            return
        place = None
        if answer.verdict is not None:
            place = len(self.ends)
            self.ends.append(_end(row, answer.verdict, DecidedBy.CHECK, answer.reason))
        else:
            self.put_backs.append(self._unanswered(row, answer))
        self.attempts.append(
            Attempt(
                half_id=row.half_id,
                look_id=row.look_id,
                round=row.round,
                attempt=attempt,
                asked_at=finding.asked_at,
                latency_ms=finding.latency_ms,
                answer=answer,
                place=place,
            )
        )

    def _unanswered(self, row: QueueRow, answer: Answer) -> PutBack:
        """Put back after an answer without a verdict: spent or not, due after the interval."""
        waiting = row.waiting
        count = waiting.check_count + answer.spent
        interval = interval_after(self._group, count, self._jitter())
        return PutBack(
            half_id=row.half_id,
            round=row.round,
            check_count=count,
            only_unknown=waiting.only_unknown
            and not (answer.spent and answer.outcome is not Outcome.UNKNOWN),
            age_from=waiting.age_from,
            delay_seconds=delay_after(
                interval, self._group.check_interval_seconds, answer.retry_after_seconds
            ),
        )


def _back(row: QueueRow, delay_seconds: int) -> PutBack:
    return PutBack(
        half_id=row.half_id,
        round=row.round,
        check_count=row.waiting.check_count,
        only_unknown=row.waiting.only_unknown,
        age_from=row.waiting.age_from,
        delay_seconds=delay_seconds,
    )


def _parking(row: QueueRow, reason: ParkedReason) -> Parking:
    return Parking(
        half_id=row.half_id,
        message_id=row.half.message_id if row.half else None,
        round=row.round,
        reason=reason,
        check_count=row.waiting.check_count,
    )


def _end(row: QueueRow, decision: Resolution, decided_by: DecidedBy, reason: str | None) -> End:
    assert row.half is not None
    return End(
        half_id=row.half_id,
        nonce=row.half.nonce,
        decision=decision,
        decided_by=decided_by,
        reason=reason,
    )
