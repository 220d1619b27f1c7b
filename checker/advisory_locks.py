"""Locks that the tasks of several checkers take in turn."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Protocol


class AdvisoryLocks(Protocol):
    """Locks that other processes see; for liveness only, no rule relies on them."""

    def try_lock(self, kind: str, number: int = 0) -> AbstractAsyncContextManager[bool]:
        """Hold a lock for the block; False when another process holds it."""
