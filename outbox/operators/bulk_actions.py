"""Actions on many messages at once: the order, what it takes, and its progress."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal
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

    @property
    def is_held(self) -> bool:
        """Whether the action is for records that Kafka refuses, not for undecided messages."""
        return self in (BulkKind.RELEASE_HELD, BulkKind.DROP_HELD)

    def takes(self, status: MessageStatus) -> bool:
        """Whether the action is for a message in this state."""
        if self.is_held:
            return status.publish_error is not None
        return status.leader is None and status.state in (State.PREPARED, State.PARKED)


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkOrder:
    """An operator's order; ``decision`` is set if the kind is FORCE_END.

    It takes what matches one of the filters, else the named messages or findings.
    ``accept_order`` also takes findings whose message a newer one of its key has overtaken.
    ``groups`` are the ids that the caller is bound to (None: all), ``asked`` is the given filter.
    """

    kind: BulkKind
    decision: Resolution | None = None
    filters: Sequence[MessageFilter] = ()
    named: Mapping[HalfId, Nonce] | None = None
    finding_ids: Sequence[str] | None = None
    accept_order: bool = False
    groups: Sequence[int] | None
    asked: Mapping[str, Any]
    action: OperatorAction
    max_items: int
    delay_seconds: int = 0
    """How long the action waits, so that it can be cancelled before it begins."""


RefusalCode = Literal[
    "not-open", "not-lost", "not-stored", "repair-pending", "order-risk", "digest-differs"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedFinding:
    """A finding whose message is not published again.

    ``code`` is not-open, not-lost (nor altered), not-stored, repair-pending, order-risk if a newer
    message of its key is committed, or digest-differs if the stored content is not the prepared
    content.
    """

    finding_id: str
    code: RefusalCode


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkMatch:
    """What an order takes now: at most ``max_items`` messages and one more, oldest first."""

    half_ids: Sequence[HalfId]
    refused: Sequence[RefusedFinding] | None = None
    """For REPUBLISH: the findings that it leaves out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkAction:
    """The progress of a bulk action; the first 100 failures are kept.

    ``starts_in_seconds``: how long it still waits; 0 once it may begin.
    """

    id: UUID
    status: Literal["waiting", "running", "finished", "cancelled"]
    starts_in_seconds: float
    matched: int
    done: int
    failed: int
    failures: Sequence[Mapping[str, Any]]
