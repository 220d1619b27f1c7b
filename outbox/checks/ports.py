"""What checks ask of the stores and of producers: the queue, the groups, the check endpoint."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

from outbox.checks.check_round import (
    Answer,
    DueSlice,
    GroupDue,
    Question,
    Settled,
    Settlement,
    SweepRound,
)
from outbox.checks.group_version import NewSecret, Precondition, StoredGroup
from outbox.checks.producer_group import ProducerGroup


class Sweep(Protocol):
    """Finds the undecided half messages once they are a second old."""

    async def sweep(self, limit: int) -> SweepRound:
        """Queue the undecided among the next ``limit`` halves and pass them all, in one commit.

        Raises CursorMoved when another sweep was faster, and DatabaseUnavailable.
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


class InternedNames(Protocol):
    """Interned names: a producer group's and a topic's id stand for them in the hot tables."""

    async def groups(self, names: Collection[str]) -> dict[str, ProducerGroup]:
        """Return the registered ones of these groups, without their secrets."""

    async def group_names(self, ids: Collection[int]) -> dict[int, str]:
        """Return group names by id, deleted groups included."""

    async def intern_topics(self, names: Collection[str]) -> dict[str, int]:
        """Return the ids of these topics, giving new ones to new names."""


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


class GroupsWithSecrets(Protocol):
    """Producer groups as those know them who sign checks."""

    async def with_secrets(self, name: str) -> tuple[ProducerGroup, datetime]:
        """Return one group with its signing secrets, and the database's time to sign with.

        Raises UnknownGroup, and DatabaseUnavailable.
        """
