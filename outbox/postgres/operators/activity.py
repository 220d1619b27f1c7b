"""Adds what the programs did to one row a minute and group, and reads the last hour and day."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import ColumnElement, Select, delete, func, select

from outbox.operators.activity import (
    CHECK,
    COUNTS,
    LIVE_MINUTES,
    MINUTES,
    GroupActivity,
    Growth,
    LastHour,
    MinuteSeries,
    OutcomeCount,
)
from outbox.postgres.messages.minute_counts import THIS_MINUTE, add_counts
from outbox.postgres.schema.operator_tables import activity
from outbox.postgres.schema.tables import producer_group
from outbox.postgres.sessions.availability import available
from outbox.postgres.sessions.reads import run

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AnyPool

KEPT: Final = timedelta(days=2)
GROUPS: Final = 50
"""The most groups of a reading."""
SERIES: Final = ("prepared", "committed", "published", "checked")
CHECKED: Final = tuple(name for name in COUNTS if name.startswith(CHECK))
MINUTE: Final = timedelta(minutes=1)


class PostgresActivity:
    """The counts of all processes. Methods raise DatabaseUnavailable."""

    def __init__(self, pool: AnyPool) -> None:
        self._pool = pool

    async def add(self, growth: Growth) -> None:
        """Add counts to the present minute, and forget what is old.

        A group that is not registered is left out.
        """
        named = select(producer_group.c.id, producer_group.c.name).where(
            producer_group.c.name.in_(growth)
        )
        async with (
            available(),
            self._pool.connection() as connection,
            connection.transaction(),
        ):
            await connection.execute("SET LOCAL synchronous_commit = off")
            groups = await run(connection, named)
            await add_counts(connection, {row["id"]: growth[row["name"]] for row in groups})
            await run(connection, delete(activity).where(activity.c.minute < _ago(KEPT)))

    async def last_hour(self) -> LastHour:
        """Return the last hour minute by minute, and the checks of the last day by outcome."""
        async with (
            available(),
            self._pool.connection() as connection,
            connection.transaction(),
        ):
            [row] = await run(connection, select(THIS_MINUTE.label("minute")))
            now = row["minute"]
            since = now - (MINUTES - 1) * MINUTE
            minutes = await run(
                connection, _sums(since).add_columns(activity.c.minute).group_by("minute")
            )
            groups = await run(connection, _by_group(since))
            [day] = await run(connection, _sums(now - timedelta(days=1)))
        lately = now - (LIVE_MINUTES - 1) * MINUTE
        return LastHour(
            begins_at=since,
            data=tuple(_series(name, since, minutes) for name in SERIES),
            groups=tuple(
                GroupActivity(
                    producer_group=row["producer_group"],
                    counts={name: int(row[name]) for name in COUNTS},
                )
                for row in groups
            ),
            check_outcomes=tuple(
                OutcomeCount(
                    outcome=name.removeprefix(CHECK),
                    live=sum(int(row[name]) for row in minutes if row["minute"] >= lately),
                    day=int(day[name]),
                )
                for name in CHECKED
                if day[name]
            ),
        )


def _ago(time: timedelta) -> ColumnElement[datetime]:
    return func.clock_timestamp() - time


def _sums(since: datetime) -> Select[Any]:
    """Return the statement that adds up each count since a minute."""
    sums = (func.coalesce(func.sum(activity.c[name]), 0).label(name) for name in COUNTS)
    return select(*sums).where(activity.c.minute >= since)


def _by_group(since: datetime) -> Select[Any]:
    """Return the statement that adds up the counts of each group, the busiest groups first."""
    mine = producer_group.c.id == activity.c.producer_group_id
    return (
        _sums(since)
        .add_columns(producer_group.c.name.label("producer_group"))
        .join(producer_group, mine)
        .group_by(producer_group.c.name)
        .order_by(func.sum(activity.c.prepared).desc(), producer_group.c.name)
        .limit(GROUPS)
    )


def _series(name: str, since: datetime, rows: Sequence[dict[str, Any]]) -> MinuteSeries:
    counts = [0] * MINUTES
    for row in rows:
        place = (row["minute"] - since) // MINUTE
        names = CHECKED if name == "checked" else (name,)
        counts[min(place, MINUTES - 1)] += sum(int(row[each]) for each in names)
    return MinuteSeries(name=name, counts=tuple(counts))
