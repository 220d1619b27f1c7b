"""One round of check-backs as values: what is claimed and what is settled. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from outbox.checks.answer import CheckAnswer
from outbox.checks.breaker import Breaker, BreakerState
from outbox.checks.producer_group import ProducerGroup
from outbox.messages.message import End, HalfMessage, ParkedReason
from outbox.messages.message_id import HalfId, Nonce, message_id_text

# -- What a round reads ---------------------------------------------------------------------------


class Drop(StrEnum):
    """Why a row of the check queue is skipped."""

    DECIDED = "decided"
    VOID = "void"
    """A recheck has started a newer round."""
    UNKNOWN = "unknown"
    """No half message with this id is stored any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRow:
    """One row of the check queue: an undecided half that waits for a check.

    ``check_count`` counts the spent checks since prepare or the last recheck, and ``only_unknown``
    is True while each of them was a valid UNKNOWN. ``age_from`` is the time of the prepare or of
    the last recheck. ``half`` is None when the row is dropped or when the stored half cannot be
    read; ``nonce`` is None when it is not stored. ``answer`` is set when a round has asked.
    """

    look_id: int
    delay_seconds: int
    half_id: HalfId
    round: int
    check_count: int
    only_unknown: bool
    age_from: datetime
    nonce: Nonce | None = None
    half: HalfMessage | None = None
    drop: Drop | None = None
    answer: CheckAnswer | None = None

    @property
    def message_id(self) -> str | None:
        """The id of the message; None when it is not stored."""
        return None if self.nonce is None else message_id_text(self.half_id, self.nonce)

    @property
    def readable(self) -> HalfMessage:
        """The half message of a row that can be asked about."""
        assert self.half is not None
        return self.half

    @property
    def attempt(self) -> int:
        """The number of the next check; it counts from 1 and grows only with spent checks."""
        return self.check_count + 1


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
    """False while the group is not asked: it rests, or its breaker is open. Then these are rows at
    their max age only."""
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
    checks: tuple[QueueRow, ...] = ()
    """The rows that were answered, for the history."""
    put_backs: tuple[QueueRow, ...] = ()
    """Rows to append with a new delay: the reference moves, the half never does (P36)."""
    parkings: tuple[tuple[QueueRow, ParkedReason], ...] = ()
    """Halves to set aside undecided, except those that have an op by then."""
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
