"""An operator's view of records that Kafka refuses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from outbox.messages.message_id import HalfId, Nonce, message_id_text
from outbox.operators.message_view import OperatorAction

COUNTED: Final = 1_000
"""The most messages that are counted behind one: a topic that is gone may hold millions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldMessage:
    """A committed message that Kafka refuses, or that waits behind a refused one."""

    half_id: HalfId
    nonce: Nonce
    topic: str
    key: bytes | None
    topic_wide: bool
    """Kafka refuses the whole topic, so the scope is the topic and not (topic, key)."""
    held_at: datetime
    publish_error: str
    attempts: int
    """The number of refusals of this record; 0 while it only waits."""
    next_attempt_at: datetime
    waiting_behind: int
    """The number of open messages of its scope after it; COUNTED: that many or more."""
    repair: str | None
    """The action that ordered to publish it again, if any."""
    dropped_at: datetime | None
    drop_reason: str | None

    @property
    def message_id(self) -> str:
        """The message's id as callers see it."""
        return message_id_text(self.half_id, self.nonce)


class HeldAdmin(Protocol):
    """An operator's access to held records; each change is audited with its reason.

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
        groups: frozenset[int] | None = None,
    ) -> Sequence[HeldMessage]:
        """Return open held records by ascending half id, or the dropped ones.

        ``refused_only`` leaves out those that only wait behind another; ``groups`` are the ids that
        the caller is bound to (None: all).
        """

    async def read_held(
        self, half_id: HalfId, nonce: Nonce, groups: frozenset[int] | None = None
    ) -> HeldMessage:
        """Return one held record, open or dropped. Raises MessageNotFound, NotHeld when released.

        Its ``waiting_behind`` counts the messages that a drop or a release would unblock. A record
        of other ``groups`` (None: all) is not found.
        """

    async def release_now(self, half_id: HalfId, nonce: Nonce, action: OperatorAction) -> None:
        """Make the relay retry the record's scope at its next read, within about a second.

        Raises MessageNotFound, or NotHeld when the record is released or dropped.
        """

    async def drop_held(self, half_id: HalfId, nonce: Nonce, action: OperatorAction) -> None:
        """Give a record up: it is never published, stays COMMITTED, and blocks no other.

        Raises MessageNotFound, or NotHeld when the record is released or dropped.
        """
