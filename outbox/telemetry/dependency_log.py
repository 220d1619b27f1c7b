"""The loss and the return of one dependency in the log: one line each, none per attempt."""

from __future__ import annotations

from outbox.telemetry.events import Event, get_logger


class DependencyLog:
    """What the log shows of one dependency; ``facts`` are in each of its lines."""

    def __init__(self, dependency: str, **facts: str) -> None:
        self._facts = {"dependency": dependency, **facts}
        self._lost = False

    def lost(self, error: Exception | None = None) -> None:
        """Note that it does not answer; log it, unless it was lost before."""
        if not self._lost:
            reason = {} if error is None else {"error": str(error)}
            get_logger().warning(Event.DEPENDENCY_LOST, **self._facts, **reason)
        self._lost = True

    def back(self) -> None:
        """Note that it answers; log it if it was lost."""
        if self._lost:
            get_logger().info(Event.DEPENDENCY_BACK, **self._facts)
        self._lost = False
