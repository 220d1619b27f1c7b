"""Executes bulk actions in the background, chunk by chunk.

Every process of the API runs this task. The database gives each chunk to one of them, so another
process continues the work of a dead one within ``POLL_SECONDS``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from outbox.errors import DatabaseUnavailable
from outbox.telemetry.dependency_log import DependencyLog

if TYPE_CHECKING:
    from outbox.postgres.operators.bulk_actions import PostgresBulkActions

POLL_SECONDS: Final = 1.0


def bulk_runner(actions: PostgresBulkActions) -> Callable[[asyncio.Event], Awaitable[None]]:
    """Return the task; once ``stop`` is set, it returns after the current chunk."""
    postgres = DependencyLog("postgres")  # the task asks PostgreSQL even without a request

    async def run(stop: asyncio.Event) -> None:
        while not stop.is_set():
            advanced = False
            try:
                advanced = await actions.advance()
                postgres.back()
            except DatabaseUnavailable as error:
                postgres.lost(error)
            if not advanced:
                with suppress(TimeoutError):
                    await asyncio.wait_for(stop.wait(), POLL_SECONDS)

    return run
