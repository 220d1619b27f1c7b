"""What the last flush showed of PostgreSQL, which may answer reads and refuse writes.

Its disk is full, it is a standby, or a default makes each transaction read-only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from outbox.clock import Clock
from outbox.errors import DatabaseUnavailable
from outbox.telemetry.dependency_log import DependencyLog

ItemT = TypeVar("ItemT")
OutcomeT = TypeVar("OutcomeT")
Flush = Callable[[Sequence[ItemT]], Awaitable[Sequence[OutcomeT]]]

SHOWN_SECONDS: Final = 60.0
"""How long a refused flush is shown while none follows: a balancer that looks at the readiness then
sends requests again, whose flush shows how it is."""


class WatchedFlushes:
    """The flushes of one kind, in one process."""

    def __init__(self, kind: str, clock: Clock) -> None:
        self._clock = clock
        self._log = DependencyLog("postgres", flush=kind)
        self._refused: tuple[float, str] | None = None

    def watch(self, flush: Flush[ItemT, OutcomeT]) -> Flush[ItemT, OutcomeT]:
        """Return the flush that notes how it ended."""

        async def watched(items: Sequence[ItemT]) -> Sequence[OutcomeT]:
            try:
                outcomes = await flush(items)
            except DatabaseUnavailable as error:
                self._refused = (self._clock.monotonic(), str(error))
                self._log.lost(error)
                raise
            self._refused = None
            self._log.back()
            return outcomes

        return watched

    def refusal(self) -> str | None:
        """Return why the last flush was refused, in PostgreSQL's words; None if it was stored."""
        if self._refused is None:
            return None
        since, words = self._refused
        return words if self._clock.monotonic() - since <= SHOWN_SECONDS else None
