"""What a takeover asks about messages that a transaction may have left open, and what it learns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from outbox.messages.offset_run import OffsetRuns


class Destination(NamedTuple):
    """Where the record of a message goes."""

    topic: str
    key: bytes | None
    partition: int | None
    """The requested partition; None: the key selects it, or without a key Kafka's client."""


class InDoubt(NamedTuple):
    """The messages of the shard that an ended transaction may have left open in Kafka."""

    listed: Mapping[bytes, Destination]
    """Where each listed message that is still stored was sent."""
    next_topics: frozenset[str]
    """Of the next messages; what was open of them is published next."""
    next_ids: frozenset[bytes]


class Doubt(NamedTuple):
    """What a takeover must know of the data topics before it publishes."""

    name: bytes
    """The shard's name in the records that end an open transaction."""
    next_topics: frozenset[str]
    next_ids: frozenset[bytes]
    """Messages that are published next; an aborted transaction may have left them open."""
    listed: Mapping[bytes, Destination]
    """The messages of batches that consumers were not known to see, and where they were sent."""
    runs: OffsetRuns
    last_since_ms: int | None
    """Records of the last batch are not older; they come after all runs. None: it has none."""
    since_ms: int | None
    """Records of other batches without known runs are not older; None: there are none."""
    acknowledged: frozenset[bytes] = frozenset()
    """The listed messages whose records Kafka had before their manifest was committed."""

    @property
    def is_timed(self) -> bool:
        """Whether some of the batches are looked for by their time."""
        return self.last_since_ms is not None or self.since_ms is not None

    @property
    def topics(self) -> frozenset[str]:
        """The topics of the listed messages."""
        return frozenset(sent.topic for sent in self.listed.values())


class SettledRecords(NamedTuple):
    """The state of the data topics."""

    hanging: tuple[tuple[str, int], ...]
    """Partitions whose oldest open transaction is one of the shard."""
    seen: frozenset[bytes] | None
    """The messages that consumers see; None: not known while another transaction is open."""
    unprovable: frozenset[bytes] = frozenset()
    """The listed messages whose absence proves nothing: something else explains it."""
    doubtful: bool = False
    """The next messages may be in a transaction that another one hides."""
