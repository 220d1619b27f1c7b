"""Creates partitions ahead of need and raises two alarms.

One is for rows in a default leaf, the other for a PostgreSQL whose clock was set.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Final, Protocol

from outbox.clock import Clock
from outbox.messages.message_id import LEAF_BITS
from outbox.telemetry.events import Event, get_logger
from outbox.telemetry.metrics import Metrics

AHEAD_SECONDS: Final = 6 * 3600.0
"""How long a reader may keep us from creating leaves, at the present rate of transactions."""
AHEAD: Final = 8
"""The least number of leaves kept ready; each holds about a million transactions."""
AHEAD_MOST: Final = 64
EVERY_SECONDS: Final = 60.0
RETRY_SECONDS: Final = 1.0
"""The wait when a session was in the way of a leaf."""
JUMP_SECONDS: Final = 60.0
"""PostgreSQL's clock has jumped if it went on by this much more or less than ours."""


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


class PartitionMaintenance:
    """Runs the task of the leaves."""

    def __init__(self, leaves: Partitions, metrics: Metrics, clock: Clock) -> None:
        self._leaves = leaves
        self._metrics = metrics
        self._clock = clock
        self._log = get_logger()
        self._without_leaf: frozenset[str] = frozenset()
        """The tables that had rows outside every leaf at the last look."""
        self._seen: tuple[int, float] | None = None
        self._rate = 0.0
        self._ahead_of_us: float | None = None
        """How far PostgreSQL's time was ahead of our monotonic clock at the last look."""

    async def step(self) -> float:
        """Show what has no leaf, then create leaves; return the seconds until the next step."""
        alone = await self._show_default_rows()
        missing = await self._leaves.create_ahead(await self._ahead())
        if alone:
            await self._show_default_rows()
        return RETRY_SECONDS if missing else EVERY_SECONDS

    async def _show_default_rows(self) -> bool:
        """Set the alarm, logged once; return whether any table has rows outside every leaf."""
        rows = await self._leaves.default_rows()
        for table, found in rows.items():
            self._metrics["default_leaf_rows"].labels(table).set(int(found))
        found_now = frozenset(table for table, found in rows.items() if found)
        for table in sorted(found_now - self._without_leaf):
            self._log.error(Event.DEFAULT_LEAF_USED, table=table)
        self._without_leaf = found_now
        return bool(found_now)

    async def _ahead(self) -> int:
        """Return how many leaves are used up in AHEAD_SECONDS at the present rate."""
        xid, at = await self._leaves.newest_xid()
        self._watch_clock(at)
        if self._seen is None or at < self._seen[1]:  # the first look, or the clock was set back
            self._seen = xid, at
        elif at - self._seen[1] >= EVERY_SECONDS / 2:
            self._rate = (xid - self._seen[0]) / (at - self._seen[1])
            self._seen = xid, at
        return min(max(AHEAD, ceil(self._rate * AHEAD_SECONDS / (1 << LEAF_BITS))), AHEAD_MOST)

    def _watch_clock(self, at: float) -> None:
        before, self._ahead_of_us = self._ahead_of_us, at - self._clock.monotonic()
        if before is not None and abs(self._ahead_of_us - before) > JUMP_SECONDS:
            self._log.error(Event.CLOCK_JUMPED, seconds=round(self._ahead_of_us - before))
            self._metrics["clock_jumps_total"].inc()
