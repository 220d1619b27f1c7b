"""What the relay's principal last saw of a topic in Kafka, for prepares that Kafka must refuse."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple, Protocol


class SeenTopic(NamedTuple):
    """A topic as the relay's principal last saw it; None: it could not be seen."""

    partitions: int | None = None
    max_content_bytes: int | None = None
    """The most bytes of key, value and headers that a record can have."""
    may_write: bool | None = None


UNSEEN: Final = SeenTopic()
"""Nothing is known of the topic: it refuses nothing."""


class TopicView(Protocol):
    """The view that the relay's principal has of Kafka's topics; called from a thread."""

    def read(self, topics: Collection[str]) -> Mapping[str, SeenTopic]:
        """Return what is seen of the topics that exist. Raises KafkaUnavailable."""

    def missing_rights(self, topics: Collection[str]) -> Collection[str]:
        """Return in words each right that the principal lacks on these topics or the manifests'.

        Raises KafkaUnavailable.
        """


class SeenTopics(Protocol):
    """The stored views. Methods raise DatabaseUnavailable."""

    async def all(self) -> Mapping[str, SeenTopic]:
        """Return the stored view of every topic that ever had a message."""

    async def store(self, seen: Mapping[str, SeenTopic]) -> None:
        """Store new views."""

    async def note_growth(self, topic: str, before: int, after: int) -> None:
        """Tell operators that a topic has more partitions: an audit row."""
