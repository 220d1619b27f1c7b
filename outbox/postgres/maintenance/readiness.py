"""PostgreSQL's part of the readiness: can it be reached, is it migrated, is a checker alive?"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from outbox.errors import DatabaseUnavailable, SchemaBehind
from outbox.operators.health_check import HEARTBEAT_SECONDS
from outbox.postgres.sessions.availability import available
from outbox.postgres.sessions.reads import rows_of
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AsyncConnection, Pool

SQL: Final = load(__name__)
BEATS_MISSED: Final = 3
ANSWER_SECONDS: Final = 2.0
"""Longest wait for a connection, and for each answer: who probes does not wait for long."""
MIGRATIONS: Final = Path(__file__).parents[3] / "migrations" / "versions"
OK: Final = "ok"
NEEDED_TASKS: Final = ("relay", "check", "sweep")
"""Without one of them a message waits: for its publication, or for its first or next check."""


def newest_revision() -> str:
    """Return the newest migration of this code: the number in its file name."""
    return max(path.name.partition("_")[0] for path in MIGRATIONS.glob("[0-9]*.py"))


def is_alive(seconds_ago: float) -> bool:
    """Judge the last heartbeat of a task; one far ahead is from before the clock was set back."""
    return abs(seconds_ago) <= BEATS_MISSED * HEARTBEAT_SECONDS


class PostgresReadiness:
    """PostgreSQL's part of the probes; ``revision`` is the newest migration of this code."""

    def __init__(self, pool: Pool, revision: str) -> None:
        self._pool = pool
        self._revision = revision

    async def checks(self) -> Mapping[str, str]:
        """Return ``ok`` or a reason for ``postgres``, ``migrations`` and ``checker_heartbeat``."""
        unknown = {"migrations": "unknown", "checker_heartbeat": "unknown"}
        try:
            async with available(), self._pool.connection(timeout=ANSWER_SECONDS) as connection:
                with connection.answering_within(ANSWER_SECONDS):
                    revision, silent = await _state(connection)
        except SchemaBehind:
            return {"postgres": OK, **unknown, "migrations": "none"}
        except DatabaseUnavailable:
            return {"postgres": self._pool.refusal or "unavailable", **unknown}
        return {
            "postgres": OK,
            "migrations": OK if revision >= self._revision else "behind",
            "checker_heartbeat": f"silent: {', '.join(silent)}" if silent else OK,
        }


async def _state(connection: AsyncConnection) -> tuple[str, list[str]]:
    """Return the revision and the silent tasks."""
    [applied] = await rows_of(connection, SQL["revision"], {})
    tasks = await rows_of(connection, SQL["tasks"], {})
    alive = {each["task"] for each in tasks if is_alive(each["seconds_ago"])}
    return applied["version_num"], [name for name in NEEDED_TASKS if name not in alive]
