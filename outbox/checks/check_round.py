"""One round of check-backs as values: what is claimed, asked, answered and settled.

A check is a question to the producer group; only an explicit, valid verdict decides (G7). Whether
an answer spends one of ``check_max`` depends only on the answer. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

from outbox.checks.breaker import Breaker, BreakerState
from outbox.checks.policy import Decision
from outbox.checks.producer_group import ProducerGroup
from outbox.checks.queue_row import QueueRow
from outbox.messages.message import End, ParkedReason, Resolution
from outbox.messages.message_id import HalfId

GONE: Final = 410
"""The endpoint is permanently gone: its group is paused, nothing is rolled back."""
NOT_SPENT_STATUSES: Final = frozenset({GONE, 429, 502, 503, 504})
"""Overload, an answer of a gateway, or a gone endpoint: not an answer about the message."""


class Outcome(StrEnum):
    """The result of a check, as metrics and the history name it."""

    COMMIT = "commit"
    ROLLBACK = "rollback"
    UNKNOWN = "unknown"
    BAD_VERDICT = "bad_verdict"
    HTTP_ERROR = "http_error"
    TIMEOUT = "timeout"
    UNREACHABLE = "unreachable"
    BLOCKED = "blocked"


ANSWERED: Final = frozenset({Outcome.COMMIT, Outcome.ROLLBACK, Outcome.UNKNOWN})
"""The outcomes of checks whose answer was valid."""
VERDICT_OF: Final = {Outcome.COMMIT: Resolution.COMMIT, Outcome.ROLLBACK: Resolution.ROLLBACK}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to one check; ``error`` is an error class, never a text of the endpoint."""

    outcome: Outcome
    http_status: int | None = None
    retry_after_seconds: int | None = None
    reason: str | None = None
    error: str | None = None

    @property
    def verdict(self) -> Resolution | None:
        """The decision that the answer contains, if any."""
        return VERDICT_OF.get(self.outcome)

    @property
    def valid(self) -> bool:
        """Whether it is what the contract asks for: COMMIT, ROLLBACK or UNKNOWN."""
        return self.outcome in ANSWERED

    @property
    def spent(self) -> bool:
        """Whether it counts toward ``check_max``: an answer without a decision."""
        if self.outcome is Outcome.HTTP_ERROR:
            return self.http_status not in NOT_SPENT_STATUSES
        return self.outcome in (Outcome.UNKNOWN, Outcome.BAD_VERDICT)

    @property
    def reached_endpoint(self) -> bool:
        """Whether the call got past the guard: a blocked call shows nothing about the endpoint."""
        return self.outcome is not Outcome.BLOCKED

    @property
    def feeds_breaker(self) -> bool:
        """Whether the endpoint failed: silence, no connection, or a 5xx."""
        if self.outcome is Outcome.HTTP_ERROR:
            return (self.http_status or 0) >= 500
        return self.outcome in (Outcome.TIMEOUT, Outcome.UNREACHABLE)

    @property
    def gone(self) -> bool:
        """Whether the endpoint answered 410."""
        return self.http_status == GONE


# -- What a round reads ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class DueSlice:
    """The due rows of one group by due time, the group's current settings, the database's time.

    ``cursors`` contains the position of each delay class as it was read.
    """

    group: ProducerGroup
    now: datetime
    cursors: dict[int, int]
    rows: tuple[QueueRow, ...]
    asks: bool = True
    """False while the group cannot be asked: it rests, its breaker is open, or its secret cannot be
    read. Then these are rows at their max age only."""
    more: bool = False
    """The slice is full: there may be more due rows."""
    breaker: Breaker | None = None
    """The group's breaker, unless it is closed."""
    server_started_at: datetime | None = None
    """When the server started that was read: another one may give the same ids to other rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDue:
    """A group with waiting halves; ``overdue_seconds`` of the oldest, negative: not yet due."""

    producer_group_id: int
    producer_group: str
    overdue_seconds: float
    aged: bool = False
    """A due half is at its max age."""
    breaker: BreakerState = BreakerState.CLOSED
    rests: bool = False
    """Paused or deleted: it is not asked."""


# -- What a round writes --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """One row that the round has finished, and the answer where the producer was asked.

    ``decision`` is None for a dropped row.
    """

    row: QueueRow
    decision: Decision | None = None
    answer: Answer | None = None
    asked_at: datetime | None = None
    latency_ms: int = 0
    call: int = 0
    """The call of the round that returned the answer: a batch is one call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """Everything that one round of a group writes, in one database transaction.

    It is complete before that transaction takes its xid. ``ends`` are in the order in which
    the verdicts arrived.
    """

    group: ProducerGroup
    moves: dict[int, tuple[int, int]] = field(default_factory=dict)
    """From where to where each delay class's cursor moves; the rows that it passes leave the queue.
    The first position is compared (I12)."""
    ends: tuple[End, ...] = ()
    checks: tuple[CheckResult, ...] = ()
    """The checks that were answered, for the history."""
    put_backs: tuple[QueueRow, ...] = ()
    """Rows to append with a new delay: the reference moves, the half never does (P36)."""
    parkings: tuple[tuple[QueueRow, ParkedReason], ...] = ()
    """Halves to set aside undecided, except those that have an op by then."""
    resumed: tuple[HalfId, ...] = ()
    """Halves that were rechecked while they were being parked: their parking is void."""
    pause_reason: str | None = None
    """Set when the endpoint is gone: the group is paused for this reason."""
    breaker_wait_seconds: int | None = None
    """The wait that begins now, CLOSES, or None: no change."""
    answered: bool | None = None
    """Whether any check got a valid verdict, UNKNOWN included; None without a question."""
    server_started_at: datetime | None = None
    """When the server started that was read, as in the slice; None: written on any server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """The effect of a settlement.

    ``resolution_seconds`` has the place of each end that decided and its time since prepare (s).
    ``conflicts`` are the places of ends that met the opposite decision.
    """

    resolution_seconds: dict[int, float]
    conflicts: frozenset[int]
    parked: frozenset[HalfId]
    breaker_changed: bool = True
    """False if the breaker stays as it is: the group was changed or resumed meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRound:
    """One sweep: how many halves it passed, and how many of them joined the check queue."""

    looked: int
    queued: int
