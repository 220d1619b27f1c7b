"""A row of the check queue: an undecided half that waits for a check, and its answer. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from outbox.checks.answer import Answer
from outbox.messages.message import HalfMessage
from outbox.messages.message_id import HalfId, Nonce, message_id_text


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
    parked: bool = False
    answer: Answer | None = None

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
