"""What the checker's maintenance asks of PostgreSQL: partitions and retention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class Partitions(Protocol):
    """The partitions that store new rows."""

    async def create_ahead(self, count: int) -> int:
        """Make sure that the next ``count`` leaves exist; return how many were missing."""

    async def default_rows(self) -> Mapping[str, bool]:
        """Return for each partitioned table whether its default leaf has rows."""


class Retirement(Protocol):
    """Leaves whose retention is over, and their removal."""

    async def leaves(self) -> list[int]:
        """Return the numbers of the leaves that exist, oldest first."""

    async def waits_for(self, leaf: int) -> str | None:
        """Return what a leaf still waits for; None: all in it has ended and may go (I15)."""

    async def remove(self, leaf: int) -> bool:
        """Remove a leaf that waits for nothing; False while a session uses it: try again later.

        The next call finishes an interrupted removal. Raises DatabaseUnavailable.
        """
