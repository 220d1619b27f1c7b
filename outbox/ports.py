"""What the programs ask of the outside world, as narrow as each caller needs it.

A port has the colour of its one kind of caller: ``async def`` for the API and the check-back side,
``def`` for the relay's threads. Every twin passes the same contract suite as the real thing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from outbox.message import End, EndOutcome, Message, PrepareOutcome


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
