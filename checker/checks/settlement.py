"""Turns the results of a round into its settlement.

The rules of spending are here. An answer without a verdict is spent, silence is not. A decision
ends the half. In every other case the half is put back and never lost. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import ceil
from typing import Final, assert_never

from outbox.checks.check_round import Answer, CheckResult, CursorMove, DueSlice, Outcome, Settlement
from outbox.checks.delays import delay_after
from outbox.checks.policy import Ask, Park, RollBack, Wait, interval_after
from outbox.checks.producer_group import ProducerGroup
from outbox.checks.queue_row import QueueRow
from outbox.messages.message import DecidedBy, End, ParkedReason, Resolution

ENDPOINT_GONE: Final = "endpoint-gone"


def settlement_of(
    due: DueSlice, results: Sequence[CheckResult], jitter: Callable[[], float]
) -> Settlement:
    """Return everything that the round writes; ``results`` are in order of arrival (O2).

    The cursor of a class stops before the first row that has no result. Results after that row are
    left out; a later round reads their rows again.
    """
    moves = _moves(due, {(each.row.delay_seconds, each.row.look_id) for each in results})
    goals = {move.delay_seconds: move.to for move in moves}
    aged = {row.look_id for row in due.aged}
    passed = [
        each
        for each in results
        if each.row.look_id in aged or each.row.look_id <= goals.get(each.row.delay_seconds, 0)
    ]
    draft = _Draft(due.group, jitter)
    for result in passed:
        draft.add(result)
    gone = any(each.answer is not None and each.answer.gone for each in passed)
    return Settlement(
        group=due.group,
        moves=moves,
        removed=due.aged,
        ends=tuple(draft.ends),
        checks=tuple(each for each in passed if each.answer is not None),
        put_backs=tuple(draft.put_backs),
        parkings=tuple(draft.parkings),
        resumed=tuple(each.row.half_id for each in passed if each.row.parked and each.decision),
        pause_reason=ENDPOINT_GONE if gone else None,
        answered=_answered(results),
        server_started_at=due.server_started_at,
    )


def _answered(results: Sequence[CheckResult]) -> bool | None:
    answers = [each.answer for each in results if each.answer is not None]
    return any(answer.valid for answer in answers) if answers else None


def _moves(due: DueSlice, done: set[tuple[int, int]]) -> tuple[CursorMove, ...]:
    """Return how far each cursor gets; the cursor of a removed row stays, and is compared."""
    goals = {row.delay_seconds: due.cursors[row.delay_seconds] for row in due.aged}
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


class _Draft:
    """The lists of a settlement while they grow."""

    def __init__(self, group: ProducerGroup, jitter: Callable[[], float]) -> None:
        self._group = group
        self._jitter = jitter
        self.ends: list[End] = []
        self.put_backs: list[QueueRow] = []
        self.parkings: list[tuple[QueueRow, ParkedReason]] = []

    def add(self, result: CheckResult) -> None:
        row, decision = result.row, result.decision
        match decision:
            case None:
                pass
            case Wait():
                delay_seconds = ceil(decision.delay.total_seconds())
                self.put_backs.append(replace(row, delay_seconds=delay_seconds))
            case Park():
                self.parkings.append((row, decision.reason))
            case RollBack():
                self._roll_back(row)
            case Ask():
                self._settle_check(row, result.answer)
            case _:
                assert_never(decision)

    def _roll_back(self, row: QueueRow) -> None:
        if row.half is None:
            self.parkings.append((row, ParkedReason.CHECK_MAX))
        else:
            self.ends.append(_end(row, Resolution.ROLLBACK, DecidedBy.POLICY, None))

    def _settle_check(self, row: QueueRow, answer: Answer | None) -> None:
        """End the half, or put it back; a call that could not be built (None) spends nothing."""
        if answer is None:
            interval = self._group.check_interval_seconds
            self.put_backs.append(replace(row, delay_seconds=interval))
        elif answer.verdict is not None:
            self.ends.append(_end(row, answer.verdict, DecidedBy.CHECK, answer.reason))
        else:
            self.put_backs.append(self._put_back(row, answer))

    def _put_back(self, row: QueueRow, answer: Answer) -> QueueRow:
        """Return the row after an answer without a verdict, spent or not."""
        count = row.check_count + answer.spent
        interval = interval_after(self._group, count, self._jitter())
        return replace(
            row,
            check_count=count,
            only_unknown=row.only_unknown
            and not (answer.spent and answer.outcome is not Outcome.UNKNOWN),
            delay_seconds=delay_after(
                interval, self._group.check_interval_seconds, answer.retry_after_seconds
            ),
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
