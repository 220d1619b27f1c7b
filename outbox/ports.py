"""What the programs ask of the outside world, as narrow as each caller needs it.

A port has the colour of its one kind of caller: ``async def`` for the API and the check-back side,
``def`` for the relay's threads. Every twin passes the same contract suite as the real thing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Protocol

from outbox.access import ApiKey, NewApiKey
from outbox.check import Answer, DueSlice, GroupDue, Question, Settled, Settlement, SweepRound
from outbox.message import (
    End,
    Ended,
    EndOutcome,
    Message,
    PrepareOutcome,
    ProducerGroup,
    Standing,
)
from outbox.message_id import HalfId
from outbox.message_view import (
    HistoryEvent,
    MessageFilter,
    MessagePage,
    MessageView,
    OperatorAction,
)
from outbox.producer_groups import NewSecret, Precondition, StoredGroup


class HalfStore(Protocol):
    """Stores half messages and their decisions; one call is one flush and one database commit."""

    async def prepare(self, messages: Sequence[Message]) -> Sequence[PrepareOutcome]:
        """Store half messages durably and answer in the order asked.

        A row that the database refuses fails alone (Unstorable). At most
        ``ROWS_PER_TRANSACTION`` messages a call. Raises DatabaseUnavailable when nothing is known
        to be stored.
        """

    async def end(self, ends: Sequence[End]) -> Sequence[EndOutcome]:
        """Decide half messages and answer in the order asked; the first decision wins (G2).

        UNKNOWN writes nothing. Raises DatabaseUnavailable; the same ends may be repeated.
        """


class Sweep(Protocol):
    """Finds the undecided half messages once they are a second old."""

    async def sweep(self, limit: int) -> SweepRound:
        """Queue the undecided among the next ``limit`` halves and pass them all, in one commit.

        Raises CursorMoved when another sweep was faster, and DatabaseUnavailable.
        """


class PlainOutbox(Protocol):
    """Makes commits of what producers published in transactions of their own."""

    async def admit(self) -> int | None:
        """Admit every message that has committed before this call; return how many.

        None says that the mode is off. Raises DatabaseUnavailable; nothing is lost then.
        """


class CheckQueue(Protocol):
    """The halves that wait for a check, read in due order, settled in one commit a round."""

    async def due_groups(self) -> Sequence[GroupDue]:
        """Return the groups that have waiting halves; one index probe a delay class."""

    async def claim(self, producer_group_id: int, limit: int) -> DueSlice | None:
        """Read up to ``limit`` due rows of a group and the group itself; locks nothing.

        None when the group or its due rows are gone. Raises DatabaseUnavailable.
        """

    async def settle(self, settlement: Settlement) -> Settled:
        """Write what a round has found out, all or nothing.

        Raises CursorMoved when another checker has settled these rows, and DatabaseUnavailable;
        then nothing was written and the same halves are asked again.
        """


class CheckEndpoint(Protocol):
    """Asks a producer group what became of its local transactions."""

    async def ask(
        self, group: ProducerGroup, questions: Sequence[Question], now: datetime
    ) -> Sequence[Answer]:
        """Make one call and answer each question in order; never raises for what came back.

        ``now``, by the database's clock, is the time that the call is signed with.
        More than one question needs a group with the batch form. Whatever is not one valid
        verdict for the id that was asked is an Answer without a verdict.
        """


class Turns(Protocol):
    """Takes turns with other processes; for liveness only, no rule relies on it."""

    def turn(self, kind: str, number: int = 0) -> AbstractAsyncContextManager[bool]:
        """Hold a turn for the block; False when another process holds it."""


class Heartbeats(Protocol):
    """Tells others that a chore is alive."""

    async def beat(self, chore: str) -> None:
        """Note, by the database's clock, that the chore has just made progress."""


class Leaves(Protocol):
    """The partitions that rows go to."""

    async def create_ahead(self, count: int) -> int:
        """Make sure that the next ``count`` leaves exist; return how many were missing."""

    async def default_rows(self) -> Mapping[str, bool]:
        """Tell for each partitioned table whether rows had to go to its default leaf."""


class Retirement(Protocol):
    """Leaves that have outlived their retention, and their end."""

    async def leaves(self) -> list[int]:
        """Return the numbers of the leaves that exist, oldest first."""

    async def waits_for(self, leaf: int) -> str | None:
        """Say what a leaf still waits for; None if everything in it has ended and may go (I15)."""

    async def remove(self, leaf: int) -> bool:
        """Remove a leaf that waits for nothing; False if somebody uses it: try again later.

        A removal that was cut off anywhere is finished by the next. Raises DatabaseUnavailable.
        """


class Names(Protocol):
    """Interned names: a producer group's and a topic's id stand for them in the hot tables."""

    async def groups(self, names: Collection[str]) -> dict[str, ProducerGroup]:
        """Return the registered ones of these groups, without their secrets."""

    async def group_names(self, ids: Collection[int]) -> dict[int, str]:
        """Return group names by id, deleted groups included."""

    async def intern_topics(self, names: Collection[str]) -> dict[str, int]:
        """Return the ids of these topics, giving new ones to new names."""


class Standings(Protocol):
    """Where messages stand now."""

    async def read(self, half_ids: Sequence[HalfId]) -> Mapping[HalfId, Standing]:
        """Return standings by id; unknown ids are missing. Raises DatabaseUnavailable."""


class TopicCatalogue(Protocol):
    """Kafka's own list of topics; asked from a thread, never by a hot request."""

    def partitions(self) -> Mapping[str, int]:
        """Return the partition count of every topic. Raises KafkaUnavailable."""

    def create(self, topics: Sequence[str]) -> None:
        """Create topics with the broker's defaults; existing ones stay. Raises KafkaUnavailable."""


class MessageBrowser(Protocol):
    """The lists and filters that people compose."""

    async def page(self, wanted: MessageFilter) -> MessagePage:
        """Return the newest messages that match. Raises DatabaseUnavailable."""

    async def get(self, half_id: HalfId, *, payload: bool = False) -> MessageView | None:
        """Return one message as it stands; ``payload`` adds key, headers and value."""

    async def history(self, half_id: HalfId) -> Sequence[HistoryEvent]:
        """Return what happened to a message, oldest first."""


class Operations(Protocol):
    """An operator's interventions, each in one transaction with its audit row."""

    async def recheck(self, half_id: HalfId, action: OperatorAction) -> datetime:
        """Make an undecided message due now, with a new round of checks; return when.

        Raises MessageNotFound, or NotRecheckable when it is decided.
        """

    async def force_end(self, end: End, action: OperatorAction) -> Ended:
        """Decide in the operator's name. Raises MessageNotFound."""


class ProducerGroups(Protocol):
    """Registered producer groups; every change is audited and raises the version."""

    async def page(
        self, names: Collection[str] | None, after: str, limit: int
    ) -> Sequence[ProducerGroup]:
        """Return groups by name, those beyond ``after``; ``names`` None means all."""

    async def get(self, name: str) -> ProducerGroup:
        """Return one group. Raises UnknownGroup."""

    async def put(
        self, group: ProducerGroup, precondition: Precondition, key_id: str | None
    ) -> StoredGroup:
        """Register or replace a group.

        Raises PreconditionRequired or PreconditionFailed when it exists and would change.
        """

    async def delete(self, name: str, precondition: Precondition, key_id: str | None) -> None:
        """Delete a group. Raises UnknownGroup, PreconditionFailed, GroupInUse."""

    async def pause(
        self, name: str, reason: str, *, paused: bool, key_id: str | None
    ) -> ProducerGroup:
        """Stop or go on asking a group; ends go on either way. Raises UnknownGroup."""

    async def rotate_secret(self, name: str, overlap_seconds: int, key_id: str | None) -> NewSecret:
        """Give the group a new signing secret; the old one lives on for the overlap."""


class ApiKeys(Protocol):
    """API keys; the secret itself is never stored."""

    async def verify(self, token: str) -> ApiKey | None:
        """Return the key that a bearer token is, or None; a bad checksum costs no query."""

    async def create(self, key: NewApiKey, actor: str | None) -> tuple[ApiKey, str]:
        """Store a new key; return it with its token, which nobody can read again."""

    async def page(self, after: str, limit: int) -> Sequence[ApiKey]:
        """Return standing keys by id, those beyond ``after``."""

    async def revoke(self, key_id: str, actor: str | None) -> bool:
        """Make a key useless; False when there is no such key."""


class Readiness(Protocol):
    """What the probes ask of PostgreSQL."""

    async def checks(self, heartbeat_seconds: int) -> Mapping[str, str]:
        """Return ``ok`` or a reason for ``postgres``, ``migrations`` and ``checker_heartbeat``."""
