"""Readiness checks and unfinished messages for the gauges; reads after cursors, never history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from psycopg.rows import class_row

from outbox.errors import DatabaseUnavailable
from outbox.postgres.sessions.availability import available
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import Pool

SQL: Final = load(__name__)
BEATS_MISSED: Final = 3
MIGRATIONS: Final = Path(__file__).parents[3] / "migrations" / "versions"
OK: Final = "ok"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfinished:
    """How many messages of a group are in a state, and the age of the oldest in seconds.

    ``PLAIN`` is not a state of a half message: it counts rows that will become one (SQL mode).
    """

    state: str
    producer_group: str
    messages: int
    oldest_age_seconds: float


def newest_revision() -> str:
    """Return the newest migration of this code: the number in its file name."""
    return max(path.name.partition("_")[0] for path in MIGRATIONS.glob("[0-9]*.py"))


class PostgresReadiness:
    """The Readiness on a pool; ``revision`` is the newest migration that this code knows."""

    def __init__(self, pool: Pool, revision: str) -> None:
        self._pool = pool
        self._revision = revision

    async def checks(self, heartbeat_seconds: int) -> Mapping[str, str]:
        """Return the result of each check; see Readiness.checks."""
        silent = {"migrations": "unknown", "checker_heartbeat": "unknown"}
        try:
            async with available(), self._pool.connection(timeout=2) as connection:
                cursor = await connection.execute(SQL["revision"])
                row = await cursor.fetchone()
                if row is None or not row[0]:
                    return {"postgres": OK, **silent, "migrations": "none"}
                cursor = await connection.execute(SQL["state"])
                state = await cursor.fetchone()
        except DatabaseUnavailable:
            return {"postgres": "unavailable", **silent}
        assert state is not None
        revision, age = state
        silent_after = BEATS_MISSED * heartbeat_seconds
        return {
            "postgres": OK,
            "migrations": OK if revision == self._revision else "behind",
            "checker_heartbeat": OK if age is not None and age <= silent_after else "silent",
        }

    async def unfinished(self) -> list[Unfinished]:
        """Count undecided, parked, unpublished and not yet admitted messages by group."""
        async with (
            available(),
            self._pool.connection() as connection,
            connection.cursor(row_factory=class_row(Unfinished)) as cursor,
        ):
            await cursor.execute(SQL["unfinished"])
            halves = await cursor.fetchall()
            await cursor.execute(SQL["plain_backlog"])
            return [*halves, *await cursor.fetchall()]
