"""Adds what the programs did to a row a minute, group and key; reads the last hour and day."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from msgspec import convert
from sqlalchemy import BigInteger, delete, func, outerjoin, select

from outbox.operators.activity import (
    CHECK,
    COUNTS,
    LIVE_MINUTES,
    GroupActivity,
    Growth,
    KeyActivity,
    LastHour,
    MinuteSeries,
    OutcomeCount,
)
from outbox.postgres.messages.minute_counts import THIS_MINUTE, add_counts
from outbox.postgres.schema.tables import activity, producer_group
from outbox.postgres.sessions.availability import transaction
from outbox.postgres.sessions.composed import run

if TYPE_CHECKING:
    from sqlalchemy import Column, Select

    from outbox.postgres.sessions.connections import AnyPool

KEPT: Final = timedelta(days=2)
GROUPS: Final = 50
"""The most groups, and the most keys, of a reading."""
CHECKED: Final = tuple(name for name in COUNTS if name.startswith(CHECK))
SERIES: Final = {name: (name,) for name in ("prepared", "committed", "published")} | {
    "checked": CHECKED
}
"""Each series, and the counts that it is the sum of."""
SUMS: Final = [
    func.coalesce(func.sum(activity.c[name]), 0).cast(BigInteger).label(name) for name in COUNTS
]
BEGIN: Final = THIS_MINUTE - timedelta(minutes=59)
MINUTES: Final = (
    func.generate_series(BEGIN, THIS_MINUTE, timedelta(minutes=1))
    .table_valued("minute", name="minutes")
    .render_derived()
)
BY_MINUTE: Final = (
    select(MINUTES.c.minute, *SUMS)
    .select_from(outerjoin(MINUTES, activity, activity.c.minute == MINUTES.c.minute))
    .group_by(MINUTES.c.minute)
    .order_by(MINUTES.c.minute)
)
DAY: Final = select(*SUMS).where(activity.c.minute >= THIS_MINUTE - timedelta(days=1))


class PostgresActivity:
    """The counts of all processes. Methods raise DatabaseUnavailable."""

    def __init__(self, pool: AnyPool) -> None:
        self._pool = pool

    async def add(self, growth: Growth) -> None:
        """Add counts to the present minute, and forget what is old.

        A group that is not registered is left out.
        """
        named = select(producer_group.c.id, producer_group.c.name).where(
            producer_group.c.name.in_({name for name, _ in growth})
        )
        async with transaction(self._pool) as connection:
            await connection.execute("SET LOCAL synchronous_commit = off")
            ids = {row["name"]: row["id"] for row in await run(connection, named)}
            counts = {(ids[name], key): growth[name, key] for name, key in growth if name in ids}
            await add_counts(connection, counts)
            await run(
                connection,
                delete(activity).where(activity.c.minute < func.clock_timestamp() - KEPT),
            )

    async def last_hour(self) -> LastHour:
        """Return the last hour minute by minute, and the checks of the last day by outcome."""
        async with transaction(self._pool) as connection:
            hour = await run(connection, BY_MINUTE)
            by_group = await run(connection, _busiest("producer_group", producer_group.c.name))
            by_key = await run(connection, _busiest("key_id", activity.c.key_id))
            [day] = await run(connection, DAY)
        return LastHour(
            begins_at=hour[0]["minute"],
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
            api_keys=convert(by_key, tuple[KeyActivity, ...]),
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


def _busiest(name: str, by: Column[Any]) -> Select[Any]:
    """Return the statement that adds up the last hour by a column, which it gives a name.

    Those with the busiest minutes come first; an empty text is left out.
    """
    minutes = (
        select(by.label(name), *SUMS)
        .where(activity.c.producer_group_id == producer_group.c.id, activity.c.minute >= BEGIN)
        .where(by != "")
        .group_by(by, activity.c.minute)
        .subquery()
    )
    busiest = func.max(minutes.c.prepared)
    sums = (func.sum(minutes.c[each]).cast(BigInteger).label(each) for each in COUNTS)
    return (
        select(minutes.c[name], busiest.label("busiest_minute"), *sums)
        .group_by(minutes.c[name])
        .order_by(busiest.desc(), minutes.c[name])
        .limit(GROUPS)
    )
