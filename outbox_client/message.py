"""The values that a producer sends and the service answers; all are frozen."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from uuid import UUID, uuid4

Data = bytes | bytearray | memoryview
"""Bytes; a message keeps a copy of those that may change."""


class LocalTransactionState(StrEnum):
    """The result of the local transaction; UNKNOWN decides nothing."""

    COMMIT = "COMMIT"
    ROLLBACK = "ROLLBACK"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class Message:
    """One event to publish if, and only if, the local transaction commits.

    ``value`` and ``key`` are bytes, text (sent as its UTF-8 bytes) or None (a tombstone, no key);
    so is the value of a header, whose None is a null.
    A UUID is sent as its text. Raises TypeError for one text as ``tags``.
    A missing ``transaction_id`` is generated once, so the same object always names the same half
    message and a prepare can be repeated safely. A new event is a new ``Message``.
    """

    topic: str
    value: Data | str | None
    key: Data | str | UUID | None = None
    partition: int | None = None
    headers: Mapping[str, Data | str | None] = field(default_factory=dict)
    content_type: str | None = None
    transaction_id: str | UUID | None = None
    check_immunity_seconds: int | None = None
    tags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.tags, str | bytes):
            raise TypeError(f"tags are several texts: ({self.tags!r},), not {self.tags!r}")
        if self.transaction_id is None:
            object.__setattr__(self, "transaction_id", str(uuid4()))
        headers = {name: _plain(value) for name, value in self.headers.items()}
        object.__setattr__(self, "headers", headers)
        object.__setattr__(self, "tags", tuple(self.tags))
        for name in ("value", "key", "transaction_id"):
            object.__setattr__(self, name, _plain(getattr(self, name)))


Messages = Message | Sequence[Message]
"""One message, or several under one decision."""


def _plain(given: Data | str | UUID | None) -> bytes | str | None:
    if isinstance(given, UUID):
        return str(given)
    return bytes(given) if isinstance(given, bytearray | memoryview) else given


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedMessage:
    """A half message that the service has stored: durable, and invisible until it is ended.

    ``message`` is the sent message, of several the first; its id is the one to end. ``message_ids``
    are the ids of all. ``replayed`` is True if an earlier prepare with the same
    ``transaction_id`` had stored it; ``state`` is then its current state.
    """

    message_id: str
    state: str
    producer_group: str
    transaction_id: str | None
    topic: str
    prepared_at: datetime
    next_check_at: datetime | None
    replayed: bool
    message: Message
    message_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ending:
    """One decision of ``end_batch``."""

    message_id: str | UUID
    decision: LocalTransactionState
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """Where Kafka stored the record."""

    topic: str
    partition: int
    offset: int
    published_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EndResult:
    """The answer to an end: the final decision, and who made it."""

    message_id: str
    state: str
    decision: LocalTransactionState | None
    decided_by: str | None
    decided_at: datetime | None
    already_ended: bool
    publication: Publication | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionSendResult:
    """The result of ``send_in_transaction``.

    ``end_delivered`` is False if the end did not reach the service: the check-back then decides
    the message, and ``state`` is the last known state.
    """

    message_id: str
    transaction_id: str | None
    local_state: LocalTransactionState
    state: str
    publication: Publication | None
    end_delivered: bool
