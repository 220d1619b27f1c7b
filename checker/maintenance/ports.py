"""What the checker's maintenance asks of PostgreSQL: partitions and retention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol


class Partitions(Protocol):
    """The partitions that store new rows."""

    async def newest_xid(self) -> tuple[int, float]:
        """Return the xid that comes next and the time of the database, in seconds."""

    async def end_frozen_sessions(self) -> Sequence[tuple[str, int, str | None]]:
        """End our sessions that have been frozen for a minute in the middle of a statement.

        Returns their programs, processes in PostgreSQL, and the hosts that they connected from.
        """

    async def create_ahead(self, count: int) -> int:
        """Create the leaves up to the newest xid, ``count`` more, and those of rows without one.

        Waits for nobody. Returns how many are still missing: try again soon.
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
