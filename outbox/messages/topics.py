"""Kafka's topics: their list, and what the relay's principal last saw of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Protocol


class TopicCatalogue(Protocol):
    """Kafka's list of topics; called from a thread, never by a prepare or an end."""

    def partitions(self) -> Mapping[str, int]:
        """Return the partition count of every topic. Raises KafkaUnavailable."""

    def create(self, topics: Sequence[str]) -> Sequence[str]:
        """Create missing topics with the broker's defaults; return those that exist now.

        Kafka may refuse to create one, for lack of a right or by a policy. Raises KafkaUnavailable.
        """


class SeenTopic(NamedTuple):
    """A topic as the relay's principal last saw it; None: it could not be seen."""

    partitions: int | None = None
    max_message_bytes: int | None = None
    """The most bytes of a batch, by the topic's limits and the relay's own."""
    may_write: bool | None = None
    compacted: bool | None = None
    """Whether the topic is known to be compacted: then each record needs a key."""


UNSEEN: Final = SeenTopic()
"""Nothing is known of the topic: it refuses nothing."""
