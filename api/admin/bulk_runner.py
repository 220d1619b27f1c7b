"""Executes bulk actions in the background, chunk by chunk.

Every process of the API runs this task. The database gives each chunk to one of them, so another
process continues the work of a dead one within ``POLL_SECONDS``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from outbox.errors import DatabaseUnavailable
from outbox.telemetry.dependency_log import DependencyLog

if TYPE_CHECKING:
    from outbox.postgres.operators.bulk_actions import PostgresBulkActions

POLL_SECONDS: Final = 1.0


def bulk_runner(actions: PostgresBulkActions) -> Callable[[], Awaitable[float]]:
    """Return the step: one chunk; it returns the seconds until the next one."""
    postgres = DependencyLog("postgres")  # the step asks PostgreSQL even without a request

    async def step() -> float:
        try:
            advanced = await actions.advance()
        except DatabaseUnavailable as error:
            postgres.lost(error)
            return POLL_SECONDS
        postgres.back()
        return 0.0 if advanced else POLL_SECONDS

    return step
