"""Heartbeats of the tasks: rows ``heartbeat:<task>`` of the progress table, by its clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from outbox.postgres.sessions.reads import rows_from
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import Pool

SQL: Final = load(__name__)


class PostgresHeartbeats:
    """The Heartbeats on a pool of connections."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def beat(self, task: str) -> None:
        """Record that a task is alive; see Heartbeats.beat."""
        await rows_from(self._pool, SQL["beat"], {"task": task})
