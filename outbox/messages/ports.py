"""What messages ask of the stores: half messages, their decisions, their status, topics.

A port has the colour of its one kind of caller: ``async def`` for the API and the checks, ``def``
for the relay's threads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from outbox.messages.message import End, EndOutcome, Message, MessageStatus, PrepareOutcome
from outbox.messages.message_id import HalfId


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


class SqlOutbox(Protocol):
    """Makes commits of what producers published in transactions of their own."""

    async def admit(self) -> int | None:
        """Admit every message that has committed before this call; return how many.

        None says that the mode is off. Raises DatabaseUnavailable; nothing is lost then.
        """


class MessageStatuses(Protocol):
    """Where messages stand now."""

    async def read(self, half_ids: Sequence[HalfId]) -> Mapping[HalfId, MessageStatus]:
        """Return standings by id; unknown ids are missing. Raises DatabaseUnavailable."""


class TopicCatalogue(Protocol):
    """Kafka's own list of topics; asked from a thread, never by a hot request."""

    def partitions(self) -> Mapping[str, int]:
        """Return the partition count of every topic. Raises KafkaUnavailable."""

    def create(self, topics: Sequence[str]) -> None:
        """Create topics with the broker's defaults; existing ones stay. Raises KafkaUnavailable."""
