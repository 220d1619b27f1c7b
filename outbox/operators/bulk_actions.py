"""Actions on many messages at once: the order and its progress."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol
from uuid import UUID

from outbox.messages.message import MessageStatus, Resolution, State
from outbox.messages.message_id import HalfId, Nonce
from outbox.operators.message_view import MessageFilter, OperatorAction


class BulkKind(StrEnum):
    """The kinds of actions on many messages."""

    RECHECK = "recheck"
    FORCE_END = "force_end"
    RELEASE_HELD = "release_held"
    DROP_HELD = "drop_held"
    REPUBLISH = "republish"
    ACCEPT_FINDING = "accept_finding"

    @property
    def is_held(self) -> bool:
        """Whether the action is for records that Kafka refuses, not for undecided messages."""
        return self in (BulkKind.RELEASE_HELD, BulkKind.DROP_HELD)

    def takes(self, status: MessageStatus) -> bool:
        """Whether the action is for a message in this state."""
        if self.is_held:
            return status.publish_error is not None
        return status.state in (State.PREPARED, State.PARKED)


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkOrder:
    """An operator's order; ``decision`` is set if the kind is FORCE_END.

    ``groups`` are the ids that the caller is bound to (None: all), ``asked`` is the given filter.
    """

    kind: BulkKind
    decision: Resolution | None
    groups: frozenset[int] | None
    asked: Mapping[str, Any]
    action: OperatorAction
    rate: int | None = None
    """For REPUBLISH: messages per second that the relay gets; None means all at once."""
    delay_seconds: int = 0
    """How long the action waits, so that it can be cancelled before it begins."""
    server_started_at: datetime | None = None
    """When the server started that named the messages; None: stored on any server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkAction:
    """The progress of an action on many messages; the first 100 failures are kept."""

    id: UUID
    matched: int
    done: int
    failed: int
    failures: Sequence[Mapping[str, Any]]
    finished: bool
    """True if nothing more is done, also when it was cancelled."""
    cancelled: bool = False
    starts_in_seconds: float = 0.0
    """How long it still waits; 0 once it may begin."""


class BulkActions(Protocol):
    """Actions on many messages; each message is judged and audited as in a single call.

    Methods raise DatabaseUnavailable.
    """

    async def server_started_at(self) -> datetime:
        """Return when the server started; ask before the messages are matched, for the order.

        After a failover that lost the last transactions, their ids are given to other messages.
        """

    async def match(
        self, kind: BulkKind, filters: Sequence[MessageFilter], at_most: int
    ) -> Sequence[HalfId]:
        """Return up to ``at_most`` ids that match one of the filters, oldest first."""

    async def match_named(
        self,
        kind: BulkKind,
        named: Collection[tuple[HalfId, Nonce]],
        groups: frozenset[int] | None,
    ) -> Sequence[HalfId]:
        """Return which of these messages the action takes, oldest first.

        A caller of some groups names no message of another one.
        """

    async def begin(self, order: BulkOrder, half_ids: Sequence[HalfId]) -> UUID:
        """Store an order for these messages; ``advance`` executes it.

        Raises DatabaseUnavailable, too, if another server has named them.
        """

    async def get(self, number: UUID, groups: frozenset[int] | None) -> BulkAction | None:
        """Return an action that a caller of these groups may see, or None."""

    async def cancel(
        self, number: UUID, groups: frozenset[int] | None, action: OperatorAction
    ) -> BulkAction | None:
        """Do nothing more of an action, audited; a finished one stays as it is.

        None if a caller of these groups may not see it.
        """

    async def resume(
        self, number: UUID, groups: frozenset[int] | None, action: OperatorAction
    ) -> BulkAction | None:
        """Go on with a cancelled action where it stopped, audited; any other stays as it is.

        None if a caller of these groups may not see it.
        """

    async def advance(self) -> bool:
        """Process the next chunk of the oldest unfinished action; False if there is none."""
