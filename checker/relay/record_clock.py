"""The times of records: PostgreSQL's clock, read again each second, since it may be set meanwhile.

Kafka takes nothing from more than an hour ahead of its own clock, and may delete at once what is
older than a topic keeps. So PostgreSQL's clock is wrong if it is more than an hour behind a time
that Kafka has taken: that time is used then, and no record is deleted unread. But where the clock
of the brokers was wrong, too, and is right again, Kafka refuses that time: PostgreSQL's is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from outbox.clock import Clock
from outbox.errors import KafkaTimeRefused

READ_SECONDS: Final = 1.0
AHEAD_SECONDS: Final = 3600.0


class RecordClock:
    """Stamps the records of one shard; ``read`` returns PostgreSQL's time in seconds."""

    def __init__(self, read: Callable[[], float], clock: Clock) -> None:
        self._read = read
        self._clock = clock
        self._ahead = 0.0
        """PostgreSQL's clock minus the monotonic one (s)."""
        self._read_at = float("-inf")
        self._stamped = float("-inf")
        self._taken = float("-inf")
        """The last time that Kafka has taken."""
        self._refused = float("inf")
        """A time that Kafka had taken and refuses now."""

    def stamp(self) -> int:
        """Return the time of the next records in milliseconds. Raises DatabaseUnavailable."""
        now = self._clock.monotonic()
        if now - self._read_at >= READ_SECONDS:
            self._ahead, self._read_at = self._read() - now, now
        self._stamped = self._ahead + now
        if self._stamped <= self._taken - AHEAD_SECONDS and self._taken < self._refused:
            self._stamped = self._taken
        return round(self._stamped * 1000)

    @contextmanager
    def trying(self) -> Iterator[int]:
        """Return the time of the next records in milliseconds, and note it if Kafka refuses it."""
        try:
            yield self.stamp()
        except KafkaTimeRefused:
            self.refused()
            raise

    def refused(self) -> bool:
        """Note that Kafka has refused the last stamp; return whether the next one is another.

        PostgreSQL's time follows a refused time that Kafka had taken; and that time follows again
        if Kafka refuses PostgreSQL's, too.
        """
        is_old = self._stamped == self._taken
        self._refused = self._taken if is_old else float("inf")
        return is_old

    def taken_before(self, at: float) -> None:
        """Note a time that Kafka has taken from this shard, perhaps of an earlier owner."""
        self._taken = max(self._taken, at)

    def taken(self) -> None:
        """Note that Kafka has taken the last stamp."""
        self._taken = self._stamped
