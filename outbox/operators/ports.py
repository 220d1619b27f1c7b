"""The ports of operators: lists of messages, interventions, readiness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, Protocol

from outbox.messages.message import End, Ended
from outbox.messages.message_id import HalfId, Nonce
from outbox.operators.message_view import (
    GroupChecks,
    HistoryEvent,
    MessageFilter,
    MessagePage,
    MessageView,
    OperatorAction,
)


class MessageBrowser(Protocol):
    """Lists and filters of messages."""

    async def page(self, wanted: MessageFilter) -> MessagePage:
        """Return the newest messages that match. Raises DatabaseUnavailable."""

    async def get(self, half_id: HalfId, *, payload: bool = False) -> MessageView | None:
        """Return the current state of a message; ``payload`` adds key, headers and value."""

    async def checks(self, group_id: int, limit: int) -> GroupChecks:
        """Return the newest checks of a group, among those of the messages that came last."""

    async def history(self, half_id: HalfId, nonce: Nonce) -> Sequence[HistoryEvent]:
        """Return the events of a message, oldest first. Raises MessageNotFound.

        After a failover that lost the last transactions, their ids are given to other messages.
        """


class Operations(Protocol):
    """An operator's interventions, each in one transaction with its audit row."""

    async def recheck(self, half_id: HalfId, nonce: Nonce, action: OperatorAction) -> datetime:
        """Make an undecided message due now, with a new round of checks; return when.

        Raises MessageNotFound, or NotRecheckable when it is decided.
        """

    async def force_end(self, end: End, action: OperatorAction) -> Ended:
        """Decide in the name of the operator. Raises MessageNotFound."""


HEARTBEAT_SECONDS: Final = 5
"""The time between two heartbeats of a task of a checker."""


class Readiness(Protocol):
    """PostgreSQL's part of the probes."""

    async def checks(self) -> Mapping[str, str]:
        """Return ``ok`` or a reason for ``postgres``, ``migrations`` and ``checker_heartbeat``."""


class Acceptances(Protocol):
    """Findings that operators accept for a time."""

    async def accept(self, finding_id: str, until: datetime, action: OperatorAction) -> bool:
        """Accept an open finding until a time, audited; False if there is no such finding.

        An unread part of the plan cannot be accepted: a run that did not read it is not clean.
        Raises TimePast, DatabaseUnavailable.
        """
