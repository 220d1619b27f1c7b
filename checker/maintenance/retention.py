"""Retirement: removes leaves whose retention is over; what is unfinished in them is kept."""

from __future__ import annotations

from collections import Counter
from typing import Final, Protocol

from checker.advisory_locks import AdvisoryLocks
from outbox.telemetry.events import Event, get_logger
from outbox.telemetry.metrics import Metrics

EVERY_SECONDS: Final = 60.0
ORDINARY: Final = frozenset({"in use", "young"})
"""Reasons that every leaf has at some time; any other reason is logged and counted."""
LOCK_KIND: Final = "retire"
REASONS: Final = ("sweep", "held", "undecided", "relay", "reconcile", "locked")


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


class Retirer:
    """Removes leaves that wait for nothing; one checker at a time."""

    def __init__(self, retirement: Retirement, locks: AdvisoryLocks, metrics: Metrics) -> None:
        self._retirement = retirement
        self._locks = locks
        self._metrics = metrics
        self._log = get_logger()
        self._logged: dict[int, str] = {}

    async def step(self) -> float:
        """Retire leaves, unless another checker does; return the seconds until the next step."""
        async with self._locks.try_lock(LOCK_KIND) as held:
            if held:
                await self.retire()
        return EVERY_SECONDS

    async def retire(self) -> list[int]:
        """Check every leaf once and return those removed. Raises DatabaseUnavailable."""
        removed: list[int] = []
        waiting: dict[int, str] = {}
        for leaf in await self._retirement.leaves():
            reason = await self._retirement.waits_for(leaf)
            if reason == "in use":
                break
            if reason is None:
                reason = None if await self._retirement.remove(leaf) else "locked"
            if reason is None:
                removed.append(leaf)
                self._log.info(Event.LEAF_RETIRED, leaf=leaf)
            elif reason not in ORDINARY:
                waiting[leaf] = reason
        await self._retirement.forget_finished()
        self._show(waiting)
        return removed

    def _show(self, waiting: dict[int, str]) -> None:
        for leaf, reason in waiting.items():
            if self._logged.get(leaf) != reason:
                self._log.warning(Event.LEAF_WAITS, leaf=leaf, reason=reason)
        self._logged = waiting
        counts = Counter(waiting.values())
        for reason in REASONS:
            self._metrics["leaves_waiting"].labels(reason).set(counts[reason])
