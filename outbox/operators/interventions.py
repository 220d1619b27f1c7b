"""What operators do to one message or one finding."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from outbox.messages.message import End, Ended
from outbox.messages.message_id import HalfId, Nonce
from outbox.operators.message_view import (
    OperatorAction,
)


class Operations(Protocol):
    """An operator's interventions, each in one transaction with its audit row."""

    async def recheck(self, half_id: HalfId, nonce: Nonce, action: OperatorAction) -> datetime:
        """Make an undecided message due now, with a new round of checks; return when.

        Raises MessageNotFound, or NotRecheckable when it is decided.
        """

    async def force_end(self, end: End, action: OperatorAction) -> Ended:
        """Decide in the name of the operator. Raises MessageNotFound."""


class Acceptances(Protocol):
    """Findings that operators accept for a time."""

    async def accept(self, finding_id: str, until: datetime, action: OperatorAction) -> bool:
        """Accept an open finding until a time, audited; False if there is no such finding.

        An unread part of the plan cannot be accepted: a run that did not read it is not clean.
        Raises TimePast, DatabaseUnavailable.
        """
