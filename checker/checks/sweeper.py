"""Sweep: halves past their first second without an op message join the check queue, once each."""

from __future__ import annotations

from typing import Final, Protocol

from checker.advisory_locks import AdvisoryLocks
from outbox.errors import CursorMoved

SLICE_HALVES: Final = 4000
"""The most halves that one sweep passes; the next sweep passes the rest."""
SWEEP_SECONDS: Final = 0.25
LOCK_BUSY_SECONDS: Final = 1.0
LOCK_KIND: Final = "sweep"


class Sweep(Protocol):
    """Finds the undecided half messages that are at least one second old."""

    async def sweep(self, limit: int) -> int:
        """Queue the undecided among the next ``limit`` halves and pass them all, in one commit.

        Returns how many it passed. Raises CursorMoved when another sweep was faster, and
        DatabaseUnavailable.
        """


class Sweeper:
    """Sweeps one slice per step; one checker at a time."""

    def __init__(self, sweep: Sweep, locks: AdvisoryLocks) -> None:
        self._sweep = sweep
        self._locks = locks

    async def step(self) -> float:
        """Pass one slice of halves; return the seconds until the next.

        Raises DatabaseUnavailable; nothing is lost then.
        """
        async with self._locks.try_lock(LOCK_KIND) as held:
            if not held:
                return LOCK_BUSY_SECONDS
            try:
                passed = await self._sweep.sweep(SLICE_HALVES)
            except CursorMoved:
                return SWEEP_SECONDS
        return 0.0 if passed >= SLICE_HALVES else SWEEP_SECONDS
