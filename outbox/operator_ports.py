"""What operators ask of the store: about records that Kafka refuses, messages that are
parked, and many at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol
from uuid import UUID

from outbox.finished_runs import (
    FindingFilter,
    KnownFinding,
    LastRun,
    OpenFindings,
    ReportFormat,
    RunPlace,
    RunSummary,
)
from outbox.message import HalfMessage, ParkedReason, ProducerGroup, Resolution
from outbox.message_id import HalfId, Nonce
from outbox.message_view import MessageFilter, OperatorAction
from outbox.record import Record


class BulkKind(StrEnum):
    """What can be done to many messages at once."""

    RECHECK = "recheck"
    FORCE_END = "force_end"
    RELEASE_HELD = "release_held"
    DROP_HELD = "drop_held"
    REPUBLISH = "republish"
    ACCEPT_FINDING = "accept_finding"

    @property
    def is_held(self) -> bool:
        """Whether it settles records that Kafka refuses, and not undecided messages."""
        return self in (BulkKind.RELEASE_HELD, BulkKind.DROP_HELD)


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkOrder:
    """What an operator asks to be done; ``decision`` is set where the kind is FORCE_END.

    ``groups`` are the ids that the caller is bound to (None: all), ``asked`` the filter as given.
    """

    kind: BulkKind
    decision: Resolution | None
    groups: frozenset[int] | None
    asked: Mapping[str, Any]
    action: OperatorAction
    rate: int | None = None
    """Of REPUBLISH: how many messages a second are handed to the relay; None means all at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkAction:
    """How far an action on many messages has come; of its failures the first 100 are kept."""

    id: UUID
    matched: int
    done: int
    failed: int
    failures: Sequence[Mapping[str, Any]]
    finished: bool


class BulkActions(Protocol):
    """Actions on many messages; each message is judged and audited as in a single call.

    Methods raise DatabaseUnavailable.
    """

    async def match(
        self, kind: BulkKind, filters: Sequence[MessageFilter], at_most: int
    ) -> Sequence[HalfId]:
        """Return up to ``at_most`` ids that match one of the filters, oldest first."""

    async def begin(self, order: BulkOrder, half_ids: Sequence[HalfId]) -> UUID:
        """Store an order for these messages; ``advance`` carries it out."""

    async def get(self, number: UUID, groups: frozenset[int] | None) -> BulkAction | None:
        """Return an action that a caller of these groups may see, or None."""

    async def advance(self) -> bool:
        """Do the next chunk of the oldest unfinished action; False when there is nothing to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldMessage:
    """A committed message that Kafka refuses, or that waits behind one."""

    half_id: HalfId
    nonce: Nonce
    topic: str
    key: bytes | None
    topic_wide: bool
    """Kafka refuses the whole topic, so its scope is the topic and not (topic, key)."""
    held_at: datetime
    publish_error: str
    attempts: int
    """How often Kafka refused this very record; 0 while it only waits."""
    next_attempt_at: datetime
    waiting_behind: int
    """How many open messages of its scope come after it."""
    repair: str | None
    """The action that entered it to be published anew, if one did."""
    dropped_at: datetime | None
    drop_reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """What publishing the message of a finding again would meet.

    ``refused`` is None when nothing stands against it: not-open, not-lost (nor altered),
    not-stored, repair-pending, order-risk when a newer message of its key is committed, or
    digest-differs when what is stored is not what was prepared.
    """

    finding_id: str
    half_id: HalfId | None
    message_id: UUID | None
    refused: str | None


class Repairs(Protocol):
    """Plans how lost and altered messages are published again."""

    async def plan(
        self, finding_ids: Sequence[str], groups: frozenset[int] | None, *, accept_order: bool
    ) -> Sequence[Repair]:
        """Judge each known finding of these groups, by finding id. Raises DatabaseUnavailable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """What stands against accepting a finding: nothing (None), not-open, or not-acceptable.

    That a part of the plan was not read cannot be accepted: a run that did not see it is not clean.
    """

    finding_id: str
    refused: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptanceOrder:
    """Until when findings count no more, who says so and why; ``groups`` as in BulkOrder."""

    until: datetime
    groups: frozenset[int] | None
    action: OperatorAction


class Acceptances(Protocol):
    """Findings that operators accept. Methods raise DatabaseUnavailable."""

    async def plan(
        self, finding_ids: Sequence[str], groups: frozenset[int] | None
    ) -> Sequence[Acceptance]:
        """Judge each known finding of these groups, by finding id."""

    async def accept(self, finding_ids: Sequence[str], order: AcceptanceOrder) -> BulkAction:
        """Accept those that still may be, each audited, until a moment that is yet to come."""


class HeldDesk(Protocol):
    """Held records as an operator sees and settles them; each change is audited with its reason.

    Methods raise DatabaseUnavailable.
    """

    async def list_held(
        self,
        *,
        limit: int,
        after: HalfId | None = None,
        topic: str | None = None,
        refused_only: bool = False,
        dropped: bool = False,
    ) -> Sequence[HeldMessage]:
        """Return open held records by ascending half id, or the dropped ones.

        ``refused_only`` leaves out those that only wait behind another.
        """

    async def read_held(self, half_id: HalfId, nonce: Nonce) -> HeldMessage:
        """Return one held record, open or dropped. Raises MessageNotFound, NotHeld when released.

        Its ``waiting_behind`` is what a drop or a release would let go on.
        """

    async def release_now(self, half_id: HalfId, nonce: Nonce, action: OperatorAction) -> None:
        """Have the relay try the record's scope at its next look, within about a second.

        Raises MessageNotFound, or NotHeld when the record is released or dropped.
        """

    async def drop_held(self, half_id: HalfId, nonce: Nonce, action: OperatorAction) -> None:
        """Give a record up: it is never published, stays COMMITTED, and holds up nobody.

        Raises MessageNotFound, or NotHeld when the record is released or dropped.
        """


class GroupsWithSecrets(Protocol):
    """Producer groups as those know them who sign checks."""

    async def with_secrets(self, name: str) -> tuple[ProducerGroup, datetime]:
        """Return one group with its signing secrets, and the database's time to sign with.

        Raises UnknownGroup, and DatabaseUnavailable.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class ParkedMessage:
    """A message that waits undecided, and why."""

    half: HalfMessage
    parked_at: datetime
    parked_reason: ParkedReason
    check_count: int


class ParkedMessages(Protocol):
    """Parked messages on their way to the parked topic. Methods raise DatabaseUnavailable."""

    async def uncopied(self, limit: int) -> Sequence[ParkedMessage]:
        """Return the oldest that stand parked and have no copy."""

    async def mark_copied(self, copied: Sequence[ParkedMessage]) -> None:
        """Note that the topic has them; one that was parked anew since stays due."""


class ParkedTopic(Protocol):
    """The topic for parked messages; called from a thread."""

    def copy(self, records: Sequence[Record]) -> Sequence[str | None]:
        """Write records; return for each None, or the error it is refused with for good.

        Raises KafkaUnavailable when any of them may not be there.
        """


class ReconciliationRuns(Protocol):
    """Finished reconciliations as operators read them. Methods raise DatabaseUnavailable."""

    async def page(self, limit: int, before: RunPlace | None) -> Sequence[RunSummary]:
        """Return runs, newest first, older than ``before``."""

    async def get(self, run_id: str) -> RunSummary | None:
        """Return one run, or None."""

    async def report(self, run_id: str, form: ReportFormat) -> str | None:
        """Return the text of a run's report, or None when it is not kept."""

    async def findings(
        self, run_id: str, wanted: FindingFilter, limit: int, after: str
    ) -> Sequence[KnownFinding]:
        """Return a run's findings above info as they stand now, by id, beyond ``after``."""

    async def last(self) -> LastRun | None:
        """Return what is measured of the newest run, or None before the first."""

    async def open_findings(self) -> Sequence[OpenFindings]:
        """Count the open findings."""
