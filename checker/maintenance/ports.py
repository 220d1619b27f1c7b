"""What the checker's maintenance asks of PostgreSQL: partitions and retention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class Partitions(Protocol):
    """The partitions that store new rows."""

    async def newest_xid(self) -> tuple[int, float]:
        """Return the xid that comes next and the time of the database, in seconds."""

    async def create_ahead(self, count: int) -> int:
        """Create the leaves up to the newest xid, ``count`` more, and those of rows without one.

        Waits for no session. Returns how many are missing because one was in the way: try again
        soon. The leaf of many rows in a default leaf stays missing: an operator makes it.
        """

    async def default_rows(self) -> Mapping[str, bool]:
        """Return for each partitioned table whether its default leaf has rows without a leaf."""


class Retirement(Protocol):
    """Leaves whose retention is over, and their removal."""

    async def leaves(self) -> list[int]:
        """Return the numbers of the leaves that exist, oldest first."""

    async def waits_for(self, leaf: int) -> str | None:
        """Return what a leaf still waits for; None: what is unfinished in it can be moved (I15)."""

    async def remove(self, leaf: int) -> bool:
        """Remove a leaf that waits for nothing, and keep what is unfinished in it.

        False while a session uses it or an audit may read it: try again later. The next call
        finishes an interrupted removal. Raises DatabaseUnavailable.
        """

    async def forget_finished(self) -> None:
        """Delete kept messages that are finished and whose decision's leaf was removed too."""
