"""Turns the rows that a round has finished into its settlement.

The rules of spending are here. An answer without a verdict is spent, silence is not. A decision
ends the half. Any other half is put back, or parked at its max age, and never lost. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, assert_never

from outbox.checks.answer import Outcome
from outbox.checks.check_round import DueSlice, QueueRow, Settlement
from outbox.checks.policy import Decision, decide, delay_after, interval_after, is_at_max_age
from outbox.messages.message import DecidedBy, End, ParkedReason, Resolution

ENDPOINT_GONE: Final = "endpoint-gone"
Parking = tuple[QueueRow, ParkedReason]


def decision_of(due: DueSlice, row: QueueRow) -> Decision | None:
    """Return what happens to a due row; None: it leaves the queue without effect."""
    if row.drop is not None:
        return None
    return decide(row, due.group, due.now) if due.asks else Decision.PARK_FOR_AGE


def settlement_of(
    due: DueSlice, finished: Sequence[QueueRow], jitter: Callable[[], float]
) -> Settlement:
    """Return everything that the round writes; ``finished`` rows are in order of their answers.

    The cursor of a class stops before the first row that is not finished. Rows after that one are
    left out; a later round reads them again.
    """
    moves = _moves(due, {(row.delay_seconds, row.look_id) for row in finished})
    passed = [row for row in finished if row.look_id <= moves.get(row.delay_seconds, (0, 0))[1]]
    ends: list[End] = []
    put_backs: list[QueueRow] = []
    parkings: list[Parking] = []
    for row in passed:
        match _effect(due, row, jitter):
            case End() as end:
                ends.append(end)
            case QueueRow() as later:
                put_backs.append(later)
            case tuple() as parking:
                parkings.append(parking)
    answers = [row.answer for row in finished if row.answer is not None]
    return Settlement(
        group=due.group,
        moves=moves,
        ends=tuple(ends),
        checks=tuple(row for row in passed if row.answer is not None),
        put_backs=tuple(put_backs),
        parkings=tuple(parkings),
        pause_reason=ENDPOINT_GONE if any(answer.gone for answer in answers) else None,
        answered=any(answer.valid for answer in answers) if answers else None,
        server_started_at=due.server_started_at,
    )


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


def _effect(
    due: DueSlice, row: QueueRow, jitter: Callable[[], float]
) -> End | QueueRow | Parking | None:
    """Return the end of a finished half, its later place in the queue, or its parking."""
    decision = decision_of(due, row)
    match decision:
        case None:
            return None
        case Decision.PARK_FOR_AGE | Decision.PARK_FOR_CHECKS:
            return row, ParkedReason(decision.value)
        case Decision.ROLL_BACK if row.half is None:
            return row, ParkedReason.CHECK_MAX
        case Decision.ROLL_BACK:
            return _end(row, Resolution.ROLLBACK, DecidedBy.POLICY, None)
        case Decision.ASK:
            return _after_check(due, row, jitter)
        case _:
            assert_never(decision)


def _after_check(
    due: DueSlice, row: QueueRow, jitter: Callable[[], float]
) -> End | QueueRow | Parking:
    """End the half, park it at its max age, or put it back.

    A call that could not be built has no answer; it spends nothing.
    """
    answer, group = row.answer, due.group
    if answer is None:
        later = replace(row, delay_seconds=group.check_interval_seconds)
    elif answer.verdict is not None:
        return _end(row, answer.verdict, DecidedBy.CHECK, answer.reason)
    else:
        count = row.check_count + answer.spent
        told_nothing = answer.spent and answer.outcome is not Outcome.UNKNOWN
        later = replace(
            row,
            check_count=count,
            only_unknown=row.only_unknown and not told_nothing,
            delay_seconds=delay_after(
                interval_after(group, count, jitter()),
                group.check_interval_seconds,
                answer.retry_after_seconds,
            ),
        )
    return (later, ParkedReason.MAX_AGE) if is_at_max_age(row, group, due.now) else later


def _end(row: QueueRow, decision: Resolution, decided_by: DecidedBy, reason: str | None) -> End:
    return End(
        half_id=row.half_id,
        nonce=row.readable.nonce,
        decision=decision,
        decided_by=decided_by,
        reason=reason,
    )
