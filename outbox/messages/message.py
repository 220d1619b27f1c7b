"""The values of a message: what a producer sends, what is stored, what was decided.

All are frozen; a change is a new value, see ``msgspec.structs.replace``. There are some for each
message, so they are structs that the garbage collector leaves alone: none can be part of a circle,
and they are made in half the time. The terms are RocketMQ's (half message, op message,
producer group, check); see docs/glossary.md.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated
from uuid import UUID

from msgspec import Meta, Struct

from outbox.messages.message_id import HalfId, Nonce, Shard, message_id_of, shard_in

Time = Annotated[datetime, Meta(tz=True)]
"""Named as a time in the JSON Schema of a struct."""
Headers = tuple[tuple[str, bytes | None], ...]
"""As Kafka has them: names, and values that are bytes or null."""


class Resolution(StrEnum):
    """The content of an end or a verdict. UNKNOWN decides nothing and writes nothing."""

    COMMIT = "COMMIT"
    ROLLBACK = "ROLLBACK"
    UNKNOWN = "UNKNOWN"  # P21


class State(StrEnum):
    """The state of a message; it is derived from the tables and never stored."""

    PREPARED = "PREPARED"
    PARKED = "PARKED"
    COMMITTED = "COMMITTED"
    PUBLISHED = "PUBLISHED"
    ROLLED_BACK = "ROLLED_BACK"


class DecidedBy(StrEnum):
    """The origin of the decision."""

    PRODUCER = "producer"
    CHECK = "check"
    OPERATOR = "operator"
    POLICY = "policy"
    RECOVERY = "recovery"


class ParkedReason(StrEnum):
    """The reason why a half message was parked undecided."""

    CHECK_MAX = "check_max"
    MAX_AGE = "max_age"


class Message(Struct, frozen=True, kw_only=True, gc=False):
    """One valid prepare request: the content of its Kafka record, exactly the caller's bytes.

    ``value`` None: a tombstone.
    """

    topic: str
    value: bytes | None
    key: bytes | None = None
    partition: int | None = None
    headers: Headers = ()
    content_type: str | None = None
    traceparent: str | None = None
    """Trace context of the prepare request (W3C), sent with the record."""
    producer_group: str
    producer_group_id: int = 0
    """The interned id of the name; 0 until it is looked up."""
    topic_id: int = 0
    """The same of the topic."""
    transaction_id: str | None = None
    check_immunity_seconds: int | None = None
    """The producer's own immunity, 1..3600 s; None takes the group's transaction timeout (P28)."""
    tags: tuple[str, ...] = ()
    key_id: str | None = None
    """The API key that prepared it, for the history."""
    followers: tuple[Message, ...] = ()
    """The other messages under its decision, of the same group and transaction id."""


class HalfMessage(Struct, frozen=True, kw_only=True, gc=False):
    """A stored half message: the message, its identity and the time of storage."""

    half_id: HalfId
    nonce: Nonce
    message: Message
    prepared_at: datetime
    content_digest: int
    followers: tuple[HalfId, ...] = ()
    leader_id: HalfId | None = None
    """The message that is ended for it; None: itself."""

    @property
    def message_id(self) -> UUID:
        """The public id, the same from prepare to the Kafka header (P6)."""
        return message_id_of(self.half_id, self.nonce)

    @property
    def shard(self) -> Shard:
        """The relay shard that publishes it."""
        return shard_in(self.half_id)


class OpMessage(Struct, frozen=True, kw_only=True, gc=False):
    """The one durable decision of a half message; the first one wins for ever (G2)."""

    decision: Resolution
    decided_by: DecidedBy
    decided_at: datetime
    reason: str | None = None


class Publication(Struct, frozen=True, kw_only=True, gc=False):
    """The place of a committed message's record in Kafka, and the time of acknowledgement."""

    topic: str
    partition: int
    offset: int
    published_at: Time


# -- Requests to the store, and its answers ------------------------------------------------------


class End(Struct, frozen=True, kw_only=True, gc=False):
    """A request to decide a half message. ``groups`` None allows every group."""

    half_id: HalfId
    nonce: Nonce
    decision: Resolution
    decided_by: DecidedBy = DecidedBy.PRODUCER
    groups: frozenset[int] | None = None
    transaction_id: str | None = None
    """If given, the message must have this transaction id (P18)."""
    reason: str | None = None
    actor: str | None = None
    """The operator's name where an operator decides."""
    awaited: bool = False
    """A caller waits until Kafka has the message."""


class MessageStatus(Struct, frozen=True, kw_only=True, gc=False):
    """The status of a message at one instant of the database."""

    half_id: HalfId
    nonce: Nonce
    producer_group_id: int
    state: State
    transaction_id: str | None = None
    op: OpMessage | None = None
    publication: Publication | None = None
    publish_error: str | None = None
    prepared_at: datetime | None = None
    """Set after a new decision, to measure the time from prepare to decision."""
    leader: UUID | None = None
    """The message that is ended for it, by public id; None: itself."""

    @property
    def resolution_seconds(self) -> float | None:
        """The time from prepare to decision, of a new decision."""
        if self.op is None or self.prepared_at is None:
            return None
        return (self.op.decided_at - self.prepared_at).total_seconds()

    @property
    def message_id(self) -> UUID:
        """The public id of the message."""
        return message_id_of(self.half_id, self.nonce)

    def contradicts(self, resolution: Resolution) -> bool:
        """Return whether a resolution is the opposite of the valid decision (409, P22)."""
        return self.op is not None and resolution not in (self.op.decision, Resolution.UNKNOWN)


class Ended(Struct, frozen=True, kw_only=True, gc=False):
    """The answer to an end: the valid decision, and whether it existed before.

    Of a message with a leader nothing was decided.
    """

    status: MessageStatus
    already_ended: bool
    conflict: bool = False
    """The request asked for the opposite of the valid decision (409)."""


class NoSuchMessage(Struct, frozen=True, kw_only=True, gc=False):
    """No half message of this id for this caller, foreign or unknown (P18)."""


class Prepared(Struct, frozen=True, kw_only=True, gc=False):
    """The half message is durable; ``replayed`` when an earlier prepare stored it (P6)."""

    half: HalfMessage
    followers: tuple[HalfMessage, ...] = ()
    state: State = State.PREPARED
    replayed: bool = False


class AlreadyDecided(Struct, frozen=True, kw_only=True, gc=False):
    """A repeated prepare of a message that has a decision: its local transaction must not run."""

    status: MessageStatus


class TransactionIdReused(Struct, frozen=True, kw_only=True, gc=False):
    """The transaction id belongs to a message with other content; nothing was stored."""

    existing_message_id: UUID
    member: str
    """The first one that differs; `content` if the stored one cannot be read."""


class GroupDeleted(Struct, frozen=True, kw_only=True, gc=False):
    """The message's producer group was deleted meanwhile; nothing was stored."""


PrepareOutcome = Prepared | AlreadyDecided | TransactionIdReused | GroupDeleted


EndOutcome = Ended | NoSuchMessage
