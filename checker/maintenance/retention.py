"""Retirement: leaves in which everything has ended and outlived its retention are removed."""

from __future__ import annotations

from collections import Counter
from typing import Final

from checker.maintenance.ports import AdvisoryLocks, Retirement
from checker.periodic_task import PeriodicTask
from outbox.telemetry.events import Event, get_logger
from outbox.telemetry.metrics import Metrics

EVERY_SECONDS: Final = 60.0
ORDINARY: Final = frozenset({"in use", "young"})
"""What each leaf waits for in its time; anything else needs somebody's eye, and shows."""
REASONS: Final = ("sweep", "check", "held", "undecided", "relay", "reconcile", "locked")


class Retirer:
    """Removes what may go; several checkers may, one at a time does."""

    def __init__(self, retirement: Retirement, metrics: Metrics) -> None:
        self._retirement = retirement
        self._metrics = metrics
        self._log = get_logger()
        self._told: dict[int, str] = {}

    async def run_once(self) -> list[int]:
        """Look at every leaf once and return those removed. Raises DatabaseUnavailable."""
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
        self._show(waiting)
        return removed

    def _show(self, waiting: dict[int, str]) -> None:
        for leaf, reason in waiting.items():
            if self._told.get(leaf) != reason:
                self._log.warning(Event.LEAF_WAITS, leaf=leaf, reason=reason)
        self._told = waiting
        counts = Counter(waiting.values())
        for reason in REASONS:
            self._metrics["leaves_waiting"].labels(reason).set(counts[reason])


def retire_chore(retirer: Retirer, turns: AdvisoryLocks) -> PeriodicTask:
    """Return the chore that retires leaves; one checker at a time does."""

    async def step() -> float:
        async with turns.turn("retire") as held:
            if held:
                await retirer.run_once()
        return EVERY_SECONDS

    return PeriodicTask(name="retire", step=step)
