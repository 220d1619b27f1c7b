"""What the gauges show of the tables: unfinished messages, heartbeats, rows; never history."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Generic, LiteralString, NamedTuple, TypeVar

import psycopg
from psycopg.rows import class_row

from outbox.clock import SystemClock
from outbox.operators.table_facts import Failing, GaugeFacts, Heartbeat, TableFacts, Unfinished
from outbox.postgres.maintenance.unfinished_count import BOUNDS, OF_HALVES, PLAIN
from outbox.postgres.maintenance.unfinished_count import SQL as UNFINISHED
from outbox.postgres.sessions.availability import RIGHTS_LOST, available
from outbox.postgres.sessions.key_order import read_in_key_order
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AsyncConnection, Pool

SQL: Final = load(__name__)
WAIT_SECONDS: Final = 2.0
LIMIT_MS: Final = 3_000
ALL_SECONDS: Final = 4.0
"""Longest waits for a connection, for a statement, and until the last statement begins: Prometheus
waits 10 s for the page, which has the process's own metrics too."""
ANSWER_SECONDS: Final = 5.0
"""A server that has not cancelled a statement by then is given up."""
T = TypeVar("T")


class PostgresGauges:
    """The GaugeSource on a pool of connections."""

    def __init__(self, pool: Pool, bounds: Mapping[str, int] = BOUNDS) -> None:
        self._pool = pool
        self._bounds = bounds
        self._clock = SystemClock()

    async def read(self) -> GaugeFacts:
        """Read each part; one that fails or takes too long leaves out no other.

        Raises DatabaseUnavailable if PostgreSQL does not answer.
        """
        facts = GaugeFacts()
        async with available(), self._pool.connection(timeout=WAIT_SECONDS) as connection:
            with connection.answering_within(ANSWER_SECONDS):
                async with connection.transaction():
                    await read_in_key_order(connection)
                    await connection.execute(SQL["limit"], {"milliseconds": LIMIT_MS})
                    errors = await self._read(connection, facts)
            if any(isinstance(error, RIGHTS_LOST) for error in errors):
                await connection.close()
        return facts

    async def _read(self, connection: AsyncConnection, facts: GaugeFacts) -> list[psycopg.Error]:
        """Read the parts one by one, until the time is over; return the errors."""
        until = self._clock.monotonic() + ALL_SECONDS
        errors = list[psycopg.Error]()
        for part in _parts_of(facts):
            if self._clock.monotonic() >= until:
                facts.unread[part.name] = "the parts before it took too long"
                continue
            error = await self._read_part(connection, part)
            facts.unread[part.name] = str(error).strip().partition("\n")[0] if error else None
            errors += [error] if error else []
        return errors

    async def _read_part(
        self, connection: AsyncConnection, part: _Part[Any]
    ) -> psycopg.Error | None:
        """Read a part; return the error after which the session can go on."""
        try:
            async with (
                connection.transaction(),
                connection.cursor(row_factory=class_row(part.kind)) as cursor,
            ):
                await cursor.execute(part.statement, self._bounds)
                part.found.extend(await cursor.fetchall())
        except psycopg.Error as error:
            if connection.closed:
                raise
            return error
        return None


class _Part(NamedTuple, Generic[T]):
    """A statement, and the list that its rows go to."""

    name: str
    statement: LiteralString
    kind: type[T]
    found: list[T]


def _parts_of(facts: GaugeFacts) -> list[_Part[Any]]:
    """Return the parts: first what costs the same on every installation."""
    return [
        _Part("heartbeats", SQL["heartbeats"], Heartbeat, facts.heartbeats),
        _Part("tables", SQL["tables"], TableFacts, facts.tables),
        _Part("failing", SQL["failing"], Failing, facts.failing),
        *(
            _Part(name, UNFINISHED[name], Unfinished, facts.unfinished)
            for name in (*OF_HALVES, PLAIN)
        ),
    ]
