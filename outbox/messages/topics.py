"""What the relay's principal last saw of Kafka's topics."""

from __future__ import annotations

from typing import Final, NamedTuple


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
