"""One check back, as values: the question, what came back, what is claimed and what is settled.

A check is a question to the producer group; only an explicit, valid verdict decides (G7). Whether
an answer spends one of ``check_max`` is a property of the answer alone (semantics 3.2). Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final
from uuid import UUID

from outbox.checks.breaker import Breaker, BreakerChange, BreakerState
from outbox.checks.policy import Waiting
from outbox.checks.producer_group import ProducerGroup
from outbox.messages.message import End, HalfMessage, ParkedReason, Resolution
from outbox.messages.message_id import HalfId

GONE: Final = 410
"""The endpoint says it is gone for good: its group is paused, nothing is rolled back."""
NOT_SPENT_STATUSES: Final = frozenset({GONE, 429, 502, 503, 504})
"""Overloaded, a gateway speaking for the producer, or gone: not an answer about the message."""


class Outcome(StrEnum):
    """What came back from a check; the words of metrics and history."""

    COMMIT = "commit"
    ROLLBACK = "rollback"
    UNKNOWN = "unknown"
    BAD_VERDICT = "bad_verdict"
    HTTP_ERROR = "http_error"
    TIMEOUT = "timeout"
    UNREACHABLE = "unreachable"
    BLOCKED = "blocked"


VERDICT_OF: Final = {Outcome.COMMIT: Resolution.COMMIT, Outcome.ROLLBACK: Resolution.ROLLBACK}


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One check to be asked: which half message, and the how-manieth counted attempt it is."""

    half: HalfMessage
    round: int
    attempt: int
    max_attempts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one check brought; ``error`` is an error class, never a text of the endpoint."""

    outcome: Outcome
    http_status: int | None = None
    retry_after_seconds: int | None = None
    reason: str | None = None
    error: str | None = None

    @property
    def verdict(self) -> Resolution | None:
        """The decision it carries, if it carries one."""
        return VERDICT_OF.get(self.outcome)

    @property
    def spent(self) -> bool:
        """Whether it counts toward ``check_max``: answered, without deciding."""
        if self.outcome is Outcome.HTTP_ERROR:
            return self.http_status not in NOT_SPENT_STATUSES
        return self.outcome in (Outcome.UNKNOWN, Outcome.BAD_VERDICT)

    @property
    def tells_of_endpoint(self) -> bool:
        """Whether it says something about the endpoint: a blocked call never reached it."""
        return self.outcome is not Outcome.BLOCKED

    @property
    def feeds_breaker(self) -> bool:
        """Whether the endpoint failed: silence, no connection, or a 5xx (interfaces 2.3)."""
        if self.outcome is Outcome.HTTP_ERROR:
            return (self.http_status or 0) >= 500
        return self.outcome in (Outcome.TIMEOUT, Outcome.UNREACHABLE)

    @property
    def gone(self) -> bool:
        """Whether the endpoint said 410."""
        return self.http_status == GONE


# -- What a slice of the queue holds --------------------------------------------------------------


class Drop(StrEnum):
    """Why a row of the check queue is passed over without a look."""

    DECIDED = "decided"
    VOID = "void"
    """A recheck has begun a newer round."""
    UNKNOWN = "unknown"
    """No half message of this id is left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRow:
    """One due row of the check queue and the half it names.

    ``half`` is None when the row is dropped or when the stored half cannot be read.
    """

    look_id: int
    delay_seconds: int
    half_id: HalfId
    round: int
    waiting: Waiting
    half: HalfMessage | None = None
    drop: Drop | None = None
    parked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DueSlice:
    """The due rows of one group in order of their due time, the group as it is set now, and the
    database's time. ``cursors`` holds the position of each delay class as it was read.
    """

    group: ProducerGroup
    now: datetime
    cursors: dict[int, int]
    rows: tuple[QueueRow, ...]
    more: bool = False
    """The slice is full: there may be more due rows."""
    breaker: Breaker | None = None
    """The group's breaker, unless it is closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDue:
    """A group with waiting halves, and how long its oldest is overdue (negative: not yet due)."""

    producer_group_id: int
    producer_group: str
    overdue_seconds: float
    breaker: BreakerState = BreakerState.CLOSED


# -- What a round writes --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One check that was made, for the history; ``place`` names its end in the settlement."""

    half_id: HalfId
    look_id: int
    round: int
    attempt: int
    asked_at: datetime
    latency_ms: int
    answer: Answer
    place: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PutBack:
    """A half that waits for a later check: the reference moves, the half never does (P36)."""

    half_id: HalfId
    round: int
    check_count: int
    only_unknown: bool
    age_from: datetime
    delay_seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Parking:
    """A half to be set aside undecided, unless it has an op by then (D8)."""

    half_id: HalfId
    message_id: UUID | None = None
    """For the log; None when the stored half cannot be read."""
    round: int
    reason: ParkedReason
    check_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CursorMove:
    """A delay class's cursor moves from where it was read; a compare-and-set (I12)."""

    delay_seconds: int
    position: int
    to: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """Everything one round of a group writes, in one database transaction; complete before that
    transaction takes its xid (O5). ``ends`` are in order of arrival of the verdicts (O2).
    """

    group: ProducerGroup
    moves: tuple[CursorMove, ...] = ()
    ends: tuple[End, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    put_backs: tuple[PutBack, ...] = ()
    parkings: tuple[Parking, ...] = ()
    resumed: tuple[HalfId, ...] = ()
    """Rechecked while they were being parked: their parking no longer stands."""
    pause_reason: str | None = None
    """Set when the endpoint is gone: the group is paused for this reason."""
    breaker: BreakerChange | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What a settlement did: for each end whether it decided and how long after prepare (s);
    which ends met the opposite decision; which halves were parked.
    """

    resolution_seconds: dict[int, float]
    conflicts: frozenset[int]
    parked: frozenset[HalfId]


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRound:
    """What one sweep did: halves it passed, and those that joined the check queue."""

    looked: int
    queued: int
