"""Retries: limited in time, spread by full jitter."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

from outbox_client.errors import OutboxError

FIRST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 2.0
SHORTEST_ATTEMPT_SECONDS = 0.05


def pause_ceiling(attempt: int) -> float:
    """Return the longest pause, in seconds, after failed attempt number ``attempt`` (from 1)."""
    doublings = min(attempt - 1, 16)
    return float(min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2**doublings))


@dataclass(slots=True, kw_only=True)
class Attempts:
    """The attempts of one call: at most ``budget_seconds`` in total, including pauses.

    One attempt may take half the budget (but at least ``floor_seconds``), so that a single dead
    connection does not use all of it.
    """

    budget_seconds: float
    floor_seconds: float = 0.0
    made: int = 0
    now: Callable[[], float] = monotonic
    jitter: Callable[[], float] = random.random
    started: float | None = None

    def attempt_seconds(self) -> float:
        """Start an attempt; return its time limit."""
        if self.started is None:
            self.started = self.now()
        self.made += 1
        share = max(self.budget_seconds / 2, self.floor_seconds)
        return max(min(share, self._left()), SHORTEST_ATTEMPT_SECONDS)

    def pause_before_retry(self, error: OutboxError) -> float | None:
        """Return the pause before a retry; None if ``error`` or the budget allows no retry."""
        if not error.retryable:
            return None
        pause = max(
            self.jitter() * pause_ceiling(self.made),
            error.retry_after_seconds or 0.0,
        )
        if pause + SHORTEST_ATTEMPT_SECONDS > self._left():
            return None
        return pause

    def _left(self) -> float:
        spent = 0.0 if self.started is None else self.now() - self.started
        return self.budget_seconds - spent
