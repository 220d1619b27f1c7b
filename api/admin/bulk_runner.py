"""Carries out actions on many messages in the background, chunk by chunk.

Every process of the API does; the database hands each chunk to one of them, so what a process
leaves behind when it dies another takes up within ``LOOK_SECONDS``.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from outbox.errors import DatabaseUnavailable
from outbox.operators.bulk_actions import BulkActions
from outbox.telemetry.events import get_logger

LOOK_SECONDS: Final = 5.0


class BulkRunner:
    """Runs for as long as the service does."""

    def __init__(self, actions: BulkActions) -> None:
        self._actions = actions
        self._wake = asyncio.Event()

    def wake(self) -> None:
        """Look at once: an action was begun, or the service stops."""
        self._wake.set()

    async def run(self, stop: asyncio.Event) -> None:
        """Carry out what there is until told to stop; returns within the chunk under way."""
        while not stop.is_set():
            if await self._advance():
                continue
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), LOOK_SECONDS)
            self._wake.clear()

    async def _advance(self) -> bool:
        """Do one chunk; False when there is nothing to do, or nothing can be done now."""
        try:
            return await self._actions.advance()
        except DatabaseUnavailable:
            return False
        except Exception:  # the edge of a task: the next look tries again
            get_logger().exception("internal_error", task="bulk_actions")
            return False
