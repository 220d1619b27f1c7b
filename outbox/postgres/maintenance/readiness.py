"""PostgreSQL's part of the readiness: can it be reached, is it migrated, is a checker alive?"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from outbox.errors import DatabaseUnavailable
from outbox.postgres.sessions.availability import available
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import Pool

SQL: Final = load(__name__)
BEATS_MISSED: Final = 3
MIGRATIONS: Final = Path(__file__).parents[3] / "migrations" / "versions"
OK: Final = "ok"
NEEDED_TASKS: Final = ("relay", "check", "sweep")
"""Without one of them a message waits: for its publication, or for its first or next check."""


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
        silent_after = BEATS_MISSED * heartbeat_seconds
        unknown = {"migrations": "unknown", "checker_heartbeat": "unknown"}
        try:
            async with available(), self._pool.connection(timeout=2) as connection:
                cursor = await connection.execute(SQL["revision"])
                row = await cursor.fetchone()
                if row is None or not row[0]:
                    return {"postgres": OK, **unknown, "migrations": "none"}
                asked = {"tasks": list(NEEDED_TASKS), "silent_after": silent_after}
                cursor = await connection.execute(SQL["state"], asked)
                state = await cursor.fetchone()
        except DatabaseUnavailable:
            return {"postgres": self._pool.refusal or "unavailable", **unknown}
        assert state is not None
        revision, silent = state
        return {
            "postgres": OK,
            "migrations": OK if revision == self._revision else "behind",
            "checker_heartbeat": f"silent: {', '.join(silent)}" if silent else OK,
        }
