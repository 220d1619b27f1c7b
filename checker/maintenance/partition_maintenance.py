"""Creates partitions ahead of need and raises an alarm when a default leaf has rows."""

from __future__ import annotations

from typing import Final

from checker.maintenance.ports import Partitions
from outbox.telemetry.events import Event, get_logger
from outbox.telemetry.metrics import Metrics

AHEAD: Final = 8
"""The number of leaves kept ready; each holds about a million transactions."""
EVERY_SECONDS: Final = 60.0


class PartitionMaintenance:
    """Runs the leaves chore."""

    def __init__(self, leaves: Partitions, metrics: Metrics) -> None:
        self._leaves = leaves
        self._metrics = metrics
        self._log = get_logger()

    async def step(self) -> float:
        """Create missing leaves, check the default ones; return the seconds until the next step."""
        await self._leaves.create_ahead(AHEAD)
        for table, found in (await self._leaves.default_rows()).items():
            self._metrics["default_leaf_rows"].labels(table).set(int(found))
            if found:
                self._log.error(Event.DEFAULT_LEAF_USED, table=table)
        return EVERY_SECONDS
