"""The loss and the return of one dependency in the log: a line each, none per attempt.

A loss that lasts has a line each REPEAT_SECONDS, and one for each kind of error: after the end of
its sessions a server may be read-only.
"""

from __future__ import annotations

from math import inf
from time import monotonic
from typing import Final

from outbox.telemetry.events import Event, get_logger

REPEAT_SECONDS: Final = 300.0


class DependencyLog:
    """What the log shows of one dependency; ``facts`` are in each of its lines."""

    def __init__(self, dependency: str, **facts: str) -> None:
        self._facts = {"dependency": dependency, **facts}
        self._said: dict[str, float] = {}
        """When each kind of error was logged last, since the dependency was lost."""

    def lost(self, error: Exception | None = None) -> None:
        """Note that it does not answer; log it, unless that was done a moment ago."""
        kind, now = str(error).partition(":")[0], monotonic()
        if now - self._said.get(kind, -inf) >= REPEAT_SECONDS:
            self._said[kind] = now
            reason = {} if error is None else {"error": str(error)}
            get_logger().warning(Event.DEPENDENCY_LOST, **self._facts, **reason)

    def back(self) -> None:
        """Note that it answers; log it if it was lost."""
        if self._said:
            get_logger().info(Event.DEPENDENCY_BACK, **self._facts)
        self._said.clear()
