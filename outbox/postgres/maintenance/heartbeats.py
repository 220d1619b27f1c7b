"""The chores' signs of life: rows ``heartbeat:<chore>`` of the progress table, by its own clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from outbox.postgres.sessions.availability import available

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import Pool

BEAT: Final = """
INSERT INTO outbox.progress AS p (name, updated_at) VALUES ('heartbeat:' || %s, clock_timestamp())
ON CONFLICT (name) DO UPDATE SET updated_at = excluded.updated_at
"""


class PostgresHeartbeats:
    """The Heartbeats on a pool of connections."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def beat(self, chore: str) -> None:
        """Note that a chore is alive; see Heartbeats.beat."""
        async with available(), self._pool.connection() as connection:
            await connection.execute(BEAT, (chore,))
