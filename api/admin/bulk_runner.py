"""Executes bulk actions in the background, chunk by chunk.

Every process of the API runs this task. The database gives each chunk to one of them, so another
process continues the work of a dead one within ``POLL_SECONDS``.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from outbox.errors import DatabaseUnavailable
from outbox.telemetry.dependency_log import DependencyLog
from outbox.telemetry.events import Event, get_logger

if TYPE_CHECKING:
    from outbox.postgres.operators.bulk_actions import PostgresBulkActions

POLL_SECONDS: Final = 5.0


class BulkRunner:
    """Runs as long as the service."""

    def __init__(self, actions: PostgresBulkActions) -> None:
        self._actions = actions
        self._wake = asyncio.Event()
        self._postgres = DependencyLog("postgres")
        """Kept here, since this task asks PostgreSQL even without a request."""

    def wake(self) -> None:
        """Poll now: an action was stored, or the service stops."""
        self._wake.set()

    async def run(self, stop: asyncio.Event) -> None:
        """Execute actions until ``stop`` is set; returns after the current chunk."""
        while not stop.is_set():
            if await self._advance():
                continue
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), POLL_SECONDS)
            self._wake.clear()

    async def _advance(self) -> bool:
        """Execute one chunk; return False if no action waits, or if PostgreSQL is down."""
        try:
            advanced = await self._actions.advance()
        except DatabaseUnavailable as error:
            self._postgres.lost(error)
            return False
        except Exception:  # outermost handler of the task: the next poll tries again
            get_logger().exception(Event.INTERNAL_ERROR, task="bulk_actions")
            return False
        self._postgres.back()
        return advanced
