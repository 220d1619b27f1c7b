"""What the gauges show of the tables: unfinished messages, heartbeats; never history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import psycopg

from outbox.postgres.sessions.availability import available
from outbox.postgres.sessions.reads import read_in_key_order, rows_of
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AsyncConnection, Pool

SQL: Final = load(__name__)
Rows = Sequence[Mapping[str, Any]]
BOUNDS: Final = {"most": 10_000, "all": 16_000}
"""The most messages that are counted of one delay class or group, and of all of a state."""
WAIT_SECONDS: Final = 2.0
LIMIT: Final = "SET LOCAL statement_timeout = '2s'"
"""Longest waits for a connection and for a statement: Prometheus waits 10 s for the page."""
ANSWER_SECONDS: Final = 5.0
"""A server that has not cancelled a statement by then is given up."""
PARTS: Final = ("heartbeats", "failing", "paused", "unfinished")
"""The statements: first what costs the same on every installation."""


class PostgresGauges:
    """Reads the gauges of the tables, on a pool of connections."""

    def __init__(self, pool: Pool, bounds: Mapping[str, int] = BOUNDS) -> None:
        self._pool = pool
        self._bounds = bounds

    async def read(self) -> tuple[Mapping[str, Rows], Mapping[str, str | None]]:
        """Return the rows of each part, and the error of each that could not be read, or None.

        A part that fails or takes too long leaves out no other. Raises DatabaseUnavailable if
        PostgreSQL does not answer.
        """
        found: dict[str, Rows] = {}
        errors: dict[str, str | None] = {}
        async with available(), self._pool.connection(timeout=WAIT_SECONDS) as connection:
            with connection.answering_within(ANSWER_SECONDS):
                async with connection.transaction():
                    await read_in_key_order(connection)
                    await connection.execute(LIMIT)
                    for part in PARTS:
                        found[part], errors[part] = await self._read_part(connection, part)
        return found, errors

    async def _read_part(self, connection: AsyncConnection, part: str) -> tuple[Rows, str | None]:
        """Return the rows of a part, or the error after which the session can go on."""
        try:
            async with connection.transaction():
                return await rows_of(connection, SQL[part], self._bounds), None
        except psycopg.Error as error:
            if connection.closed:
                raise
            return (), str(error).strip().partition("\n")[0]
