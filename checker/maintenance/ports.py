"""What the checker's maintenance asks of PostgreSQL: locks, heartbeats, partitions, retention."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol


class AdvisoryLocks(Protocol):
    """Takes turns with other processes; for liveness only, no rule relies on it."""

    def turn(self, kind: str, number: int = 0) -> AbstractAsyncContextManager[bool]:
        """Hold a turn for the block; False when another process holds it."""


class Heartbeats(Protocol):
    """Tells others that a chore is alive."""

    async def beat(self, chore: str) -> None:
        """Note, by the database's clock, that the chore has just made progress."""


class Partitions(Protocol):
    """The partitions that rows go to."""

    async def create_ahead(self, count: int) -> int:
        """Make sure that the next ``count`` leaves exist; return how many were missing."""

    async def default_rows(self) -> Mapping[str, bool]:
        """Tell for each partitioned table whether rows had to go to its default leaf."""


class Retirement(Protocol):
    """Leaves that have outlived their retention, and their end."""

    async def leaves(self) -> list[int]:
        """Return the numbers of the leaves that exist, oldest first."""

    async def waits_for(self, leaf: int) -> str | None:
        """Say what a leaf still waits for; None if everything in it has ended and may go (I15)."""

    async def remove(self, leaf: int) -> bool:
        """Remove a leaf that waits for nothing; False if somebody uses it: try again later.

        A removal that was cut off anywhere is finished by the next. Raises DatabaseUnavailable.
        """
