"""The ports of messages: half messages, their decisions, topics.

A port fits its one kind of caller: ``async def`` for the API and the checks, ``def`` for the
relay's threads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from outbox.messages.message import End, EndOutcome, Message, PrepareOutcome


class HalfStore(Protocol):
    """Stores half messages and their decisions; one call is one flush and one database commit."""

    async def prepare(self, messages: Sequence[Message]) -> Sequence[PrepareOutcome]:
        """Store half messages durably and answer in the order of the request.

        A row that the database refuses fails alone (Unstorable). At most
        ``ROWS_PER_TRANSACTION`` messages per call. Raises DatabaseUnavailable when nothing is
        known to be stored.
        """

    async def end(self, ends: Sequence[End]) -> Sequence[EndOutcome]:
        """Decide half messages and answer in the order of the request; the first wins (G2).

        UNKNOWN writes nothing. Raises DatabaseUnavailable; the same ends may be repeated.
        """


class TopicCatalogue(Protocol):
    """Kafka's list of topics; called from a thread, never by a prepare or an end."""

    def partitions(self) -> Mapping[str, int]:
        """Return the partition count of every topic. Raises KafkaUnavailable."""

    def create(self, topics: Sequence[str]) -> Sequence[str]:
        """Create missing topics with the broker's defaults; return those that exist now.

        Kafka may refuse to create one, for lack of a right or by a policy. Raises KafkaUnavailable.
        """
