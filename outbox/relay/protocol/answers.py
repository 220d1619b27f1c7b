"""The answers of the driver: the result of the last action of a plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from msgspec import Struct

from outbox.messages.manifest import Kind, Manifest, Position
from outbox.messages.message_id import HalfId
from outbox.messages.record import Committed
from outbox.relay.protocol.state import (
    Failure,
    Found,
    Identity,
    Progress,
    Refusal,
)

THIS_CLOCK: Final = 0
"""The timestamp of a record comes from the clock of the publishing process."""
UNKNOWN_OFFSET: Final = -1
"""Kafka has not acknowledged the record, or did not say where it is."""


class Answer(Struct, frozen=True):
    """The result of an action."""


class Rested(Answer, frozen=True):
    """The rest is over (or the relay has just started)."""


class StopAsked(Answer, frozen=True):
    """The process stops cleanly."""


class LockTaken(Answer, frozen=True):
    """We hold the shard's lock in PostgreSQL: this is for liveness, not safety."""


class LockBusy(Answer, frozen=True):
    """Another session holds the lock."""


class StoresIdentified(Answer, frozen=True):
    """The answer to IdentifyStores."""

    installation: UUID
    identity: Identity
    partitions: int
    progress: Progress | None


class Fenced(Answer, frozen=True):
    """Every older handle is fenced, and every older transaction is complete."""


class Bounds(Answer, frozen=True):
    """The answer to ReadBounds; ``end`` counts uncommitted records and markers as well."""

    progress: Progress | None
    start: int
    end: int


class ManifestsRead(Answer, frozen=True):
    """The next manifests; ``reached`` when nothing is left below the requested end."""

    found: tuple[Found, ...]
    reached: bool
    waited: float = 0.0
    """The seconds until then; the broker answered."""


class Compared(Answer, frozen=True):
    """The answer to Compare."""

    message_ids: tuple[bytes, ...]
    below_watermark: bool
    held: frozenset[bytes]
    """Message ids of the manifest that have a row in ``held_record``."""


class Stored(Answer, frozen=True):
    """The answer to Recover and MarkReleased: PostgreSQL has the batch or the marks now."""


class Commits(Answer, frozen=True):
    """The next messages of a shard, or of a due scope of held ones, in commit order.

    None when there is nothing to do.
    """

    to: Position
    message_ids: tuple[bytes, ...] = ()
    messages: Sequence[Committed] = ()
    before: frozenset[bytes] = frozenset()
    """The ids that Kafka already has (``already_published``)."""
    held: frozenset[bytes] = frozenset()
    """The ids that have a row in ``held_record`` or whose scope has an open one."""
    kind: Kind = Kind.BATCH
    """RELEASE or REPAIR: they were held."""
    redriven: str | None = None
    """The operator's action that ordered to publish them again, if any."""
    due: bool = False
    """A scope of held messages at or below the position is due for a retry."""
    awaited: bool = False
    """A caller waits until one of them is published: the progress is then saved soon."""
    ages: tuple[float, ...] = ()
    """Seconds since the first and the last of them were decided, by PostgreSQL's clock."""
    clock_ms: int = THIS_CLOCK
    """PostgreSQL's time when they were read: the timestamp of their records."""
    at: float = 0.0
    """The relay's monotonic time when they were read."""


class DeliveryReport(Answer, frozen=True):
    """The delivery reports of a batch; ``refused`` is the first permanent refusal."""

    good: int
    refused: Refusal | None = None
    alike: Sequence[int] = ()
    """The places of the other records that Kafka names in the same refusal."""
    offset: int = UNKNOWN_OFFSET
    """The manifest's."""
    crc: int = 0
    """The manifest's checksum."""
    half_ids: Sequence[HalfId] = ()
    """Of the records, in order; the next two are their places in Kafka."""
    partitions: Sequence[int] = ()
    offsets: Sequence[int] = ()
    failure: str | None = None
    """The first record that was not delivered for another cause: its topic, and the cause."""


Delivered = tuple[Manifest, DeliveryReport]
"""A batch, and where Kafka has its records: what ``publication_log`` stores."""


class CommitEnded(Answer, frozen=True):
    """The commit returned without an error."""

    at: float
    seconds: float


class Failed(Answer, frozen=True):
    """The action failed; the actions after it were not executed."""

    failure: Failure
