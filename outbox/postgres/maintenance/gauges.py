"""What the gauges show of the tables: unfinished messages, heartbeats, rows; never history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from psycopg.rows import class_row

from outbox.postgres.sessions.availability import available
from outbox.postgres.sessions.key_order import read_in_key_order
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AsyncConnection, Pool

SQL: Final = load(__name__)
COUNTED: Final = 1_000
"""The most unpublished messages of a shard that one reading counts; more are estimated."""
WAIT_SECONDS: Final = 2.0
ANSWER_SECONDS: Final = 5.0
"""Longest waits for a connection and for an answer: Prometheus waits 10 s for the page, which has
the process's own metrics too."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfinished:
    """How many messages of a group and topic are in a state, and the age of the oldest in seconds.

    Of a shard with more than ``COUNTED`` unpublished messages those that were committed first are
    read; the number behind them is estimated.

    Two are not states of a half message: ``HELD`` is COMMITTED and refused by Kafka, ``PLAIN``
    counts rows that will become one (SQL mode).
    """

    state: str
    producer_group: str
    topic: str
    messages: int
    oldest_age_seconds: float
    check_interval_seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """The time of a task's last heartbeat, in seconds since 1970."""

    chore: str
    beaten_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    """A group with waiting halves, and for how many seconds all its checks have failed."""

    producer_group: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFacts:
    """PostgreSQL's estimate of a table's rows, and its last vacuum in seconds since 1970."""

    table: str
    live_rows: float
    vacuumed_at: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GaugeFacts:
    """What one reading found."""

    unfinished: Sequence[Unfinished]
    heartbeats: Sequence[Heartbeat]
    failing: Sequence[Failing]
    tables: Sequence[TableFacts]


class PostgresGauges:
    """The GaugeSource on a pool of connections."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def read(self) -> GaugeFacts:
        """Read everything in one transaction. Raises DatabaseUnavailable."""
        async with available(), self._pool.connection(timeout=WAIT_SECONDS) as connection:
            with connection.answering_within(ANSWER_SECONDS):
                async with connection.transaction():
                    return await _facts(connection)


async def _facts(connection: AsyncConnection) -> GaugeFacts:
    await read_in_key_order(connection)
    halves = await _rows(connection, Unfinished, "unfinished")
    plain = await _rows(connection, Unfinished, "plain_backlog")
    return GaugeFacts(
        unfinished=[*halves, *plain],
        heartbeats=await _rows(connection, Heartbeat, "heartbeats"),
        failing=await _rows(connection, Failing, "failing"),
        tables=await _rows(connection, TableFacts, "table_facts"),
    )


async def _rows(connection: AsyncConnection, kind: type[T], statement: str) -> list[T]:
    """Run a statement; return its rows."""
    async with connection.cursor(row_factory=class_row(kind)) as cursor:
        await cursor.execute(SQL[statement], {"most": COUNTED})
        return await cursor.fetchall()
