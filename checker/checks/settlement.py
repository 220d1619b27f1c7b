"""Turns the results of a round into its settlement.

The rules of spending are here. An answer without a verdict is spent, silence is not. A decision
ends the half. Any other half is put back, or parked at its max age, and never lost. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, assert_never

from outbox.checks.check_round import Answer, CheckResult, DueSlice, Outcome, Settlement
from outbox.checks.delays import delay_after
from outbox.checks.policy import Decision, interval_after, is_at_max_age
from outbox.checks.queue_row import QueueRow
from outbox.messages.message import DecidedBy, End, ParkedReason, Resolution

ENDPOINT_GONE: Final = "endpoint-gone"


def settlement_of(
    due: DueSlice, results: Sequence[CheckResult], jitter: Callable[[], float]
) -> Settlement:
    """Return everything that the round writes; ``results`` are in order of arrival.

    The cursor of a class stops before the first row that has no result. Results after that row are
    left out; a later round reads their rows again.
    """
    moves = _moves(due, {(each.row.delay_seconds, each.row.look_id) for each in results})
    passed = [
        each for each in results if each.row.look_id <= moves.get(each.row.delay_seconds, (0, 0))[1]
    ]
    draft = _Draft(due, jitter)
    for result in passed:
        draft.add(result)
    gone = any(each.answer is not None and each.answer.gone for each in passed)
    return Settlement(
        group=due.group,
        moves=moves,
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


def _moves(due: DueSlice, done: set[tuple[int, int]]) -> dict[int, tuple[int, int]]:
    """Return how far the cursor of each delay class gets."""
    goals: dict[int, int] = {}
    stopped: set[int] = set()
    for row in due.rows:
        if (row.delay_seconds, row.look_id) not in done:
            stopped.add(row.delay_seconds)
        elif row.delay_seconds not in stopped:
            goals[row.delay_seconds] = row.look_id
    return {delay: (due.cursors[delay], goal) for delay, goal in sorted(goals.items())}


class _Draft:
    """The lists of a settlement while they grow."""

    def __init__(self, due: DueSlice, jitter: Callable[[], float]) -> None:
        self._group = due.group
        self._now = due.now
        self._jitter = jitter
        self.ends: list[End] = []
        self.put_backs: list[QueueRow] = []
        self.parkings: list[tuple[QueueRow, ParkedReason]] = []

    def add(self, result: CheckResult) -> None:
        match result.decision:
            case None:
                pass
            case Decision.PARK_FOR_AGE | Decision.PARK_FOR_CHECKS:
                self.parkings.append((result.row, ParkedReason(result.decision.value)))
            case Decision.ROLL_BACK:
                self._roll_back(result.row)
            case Decision.ASK:
                self._settle_check(result.row, result.answer)
            case _:
                assert_never(result.decision)

    def _roll_back(self, row: QueueRow) -> None:
        if row.half is None:
            self.parkings.append((row, ParkedReason.CHECK_MAX))
        else:
            self.ends.append(_end(row, Resolution.ROLLBACK, DecidedBy.POLICY, None))

    def _settle_check(self, row: QueueRow, answer: Answer | None) -> None:
        """End the half, park it at its max age, or put it back.

        A call that could not be built has no answer; it spends nothing.
        """
        if answer is not None and answer.verdict is not None:
            self.ends.append(_end(row, answer.verdict, DecidedBy.CHECK, answer.reason))
            return
        if answer is None:
            later = replace(row, delay_seconds=self._group.check_interval_seconds)
        else:
            later = self._after(row, answer)
        if is_at_max_age(row, self._group, self._now):
            self.parkings.append((later, ParkedReason.MAX_AGE))
        else:
            self.put_backs.append(later)

    def _after(self, row: QueueRow, answer: Answer) -> QueueRow:
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
    return End(
        half_id=row.half_id,
        nonce=row.readable.nonce,
        decision=decision,
        decided_by=decided_by,
        reason=reason,
    )
