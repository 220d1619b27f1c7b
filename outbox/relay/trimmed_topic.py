"""Whether retention can explain that the record of a message is missing. Pure."""

from __future__ import annotations

from typing import NamedTuple

from outbox.messages.murmur2 import POSITIVE, murmur2
from outbox.relay.doubt import Destination


class TrimmedTopic(NamedTuple):
    """A topic that may have had records of a batch in the part of a log that is gone."""

    partitions: int
    """As many the topic has now; it never has fewer than before."""
    least: int
    """As many it had for certain when the batch was sent; 0: not known."""
    trimmed: frozenset[int]
    """The partitions whose log begins behind the place where the batch may begin."""

    def may_have_lost(self, sent: Destination) -> bool:
        """Return whether the record may have been in one of the trimmed partitions.

        A key names one partition for each number of partitions that the topic may have had.
        """
        if sent.partition is not None:
            return sent.partition in self.trimmed
        if sent.key is None:
            return bool(self.trimmed)
        hashed = murmur2(sent.key) & POSITIVE
        counts = range(max(1, self.least), self.partitions + 1)
        return not self.trimmed.isdisjoint(hashed % count for count in counts)
