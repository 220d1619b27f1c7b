"""What every part of the checker asks of PostgreSQL: advisory locks and heartbeats."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Protocol


class AdvisoryLocks(Protocol):
    """Locks that other processes see; for liveness only, no rule relies on them."""

    def try_lock(self, kind: str, number: int = 0) -> AbstractAsyncContextManager[bool]:
        """Hold a lock for the block; False when another process holds it."""


class Heartbeats(Protocol):
    """Shows other processes that a task is alive."""

    async def beat(self, task: str) -> None:
        """Store, by the database's clock, that the task has just made progress."""
