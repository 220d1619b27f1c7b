"""Adds what the programs did to one row a minute and group, and reads the last hour and day."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import BigInteger, ColumnElement, Select, cast, delete, func, select

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
from outbox.postgres.sessions.availability import transaction
from outbox.postgres.sessions.reads import run

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AnyPool

KEPT: Final = timedelta(days=2)
GROUPS: Final = 50
"""The most groups of a reading."""
CHECKED: Final = tuple(name for name in COUNTS if name.startswith(CHECK))
SERIES: Final = {name: (name,) for name in ("prepared", "committed", "published")} | {
    "checked": CHECKED
}
"""Each series, and the counts that it is the sum of."""
NOTHING: Final = dict.fromkeys(COUNTS, 0)
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
        async with transaction(self._pool) as connection:
            await connection.execute("SET LOCAL synchronous_commit = off")
            groups = await run(connection, named)
            await add_counts(connection, {row["id"]: growth[row["name"]] for row in groups})
            await run(
                connection,
                delete(activity).where(activity.c.minute < func.clock_timestamp() - KEPT),
            )

    async def last_hour(self) -> LastHour:
        """Return the last hour minute by minute, and the checks of the last day by outcome."""
        minute, name = activity.c.minute, producer_group.c.name.label("producer_group")
        busiest = func.max(activity.c.prepared).label("busiest_minute")
        async with transaction(self._pool) as connection:
            [present] = await run(connection, select(THIS_MINUTE.label("minute")))
            now = present["minute"]
            since = now - (MINUTES - 1) * MINUTE
            by_minute = await run(
                connection, _sums(since).add_columns(minute).group_by(minute).order_by(minute)
            )
            by_group = await run(
                connection,
                _sums(since)
                .add_columns(name, busiest)
                .join(producer_group, producer_group.c.id == activity.c.producer_group_id)
                .group_by(name)
                .order_by(busiest.desc(), name)
                .limit(GROUPS),
            )
            [day] = await run(connection, _sums(now - timedelta(days=1)))
        minutes = {row["minute"]: row for row in by_minute}
        hour = [minutes.get(since + place * MINUTE, NOTHING) for place in range(MINUTES)]
        return LastHour(
            begins_at=since,
            data=tuple(
                MinuteSeries(
                    name=series, counts=tuple(sum(each[count] for count in counts) for each in hour)
                )
                for series, counts in SERIES.items()
            ),
            groups=tuple(
                GroupActivity(
                    producer_group=row.pop("producer_group"),
                    busiest_minute=row.pop("busiest_minute"),
                    counts=row,
                )
                for row in by_group
            ),
            check_outcomes=tuple(
                OutcomeCount(
                    outcome=count.removeprefix(CHECK),
                    live=sum(each[count] for each in hour[-LIVE_MINUTES:]),
                    day=day[count],
                )
                for count in CHECKED
                if day[count]
            ),
        )


def _sums(since: datetime) -> Select[Any]:
    """Return the statement that adds up each count since a minute."""
    sums: list[ColumnElement[Any]] = [
        func.coalesce(cast(func.sum(activity.c[name]), BigInteger), 0).label(name)
        for name in COUNTS
    ]
    return select(*sums).where(activity.c.minute >= since)
