"""Adds what the programs did to a row a minute, group and key; reads the last hour and day."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import convert

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
from outbox.postgres.messages.interned_names import PostgresInternedNames
from outbox.postgres.messages.minute_counts import add_counts
from outbox.postgres.sessions.availability import transaction
from outbox.postgres.sessions.reads import rows_of
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AnyPool

GROUPS: Final = 50
"""The most groups, and the most keys, of a reading."""
CHECKED: Final = tuple(name for name in COUNTS if name.startswith(CHECK))
SERIES: Final = {name: (name,) for name in ("prepared", "committed", "published")} | {
    "checked": CHECKED
}
"""Each series, and the counts that it is the sum of."""
SUMS: Final = ", ".join(f"coalesce(sum({name}), 0)::int8 AS {name}" for name in COUNTS)
SQL: Final = {name: text.format(sums=SUMS) for name, text in load(__name__).items()}


class PostgresActivity:
    """The counts of all processes. Methods raise DatabaseUnavailable."""

    def __init__(self, pool: AnyPool) -> None:
        self._pool = pool

    async def add(self, growth: Growth) -> None:
        """Add counts to the present minute, and forget what is old.

        A group that is not registered is left out.
        """
        ids = await PostgresInternedNames(self._pool).group_ids({name for name, _ in growth})
        counts = {(ids[name], key): growth[name, key] for name, key in growth if name in ids}
        async with transaction(self._pool) as connection:
            await connection.execute("SET LOCAL synchronous_commit = off")
            await add_counts(connection, counts)
            await connection.execute(SQL["forget"])

    async def last_hour(self) -> LastHour:
        """Return the last hour minute by minute, and the checks of the last day by outcome."""
        most = {"groups": GROUPS}
        async with transaction(self._pool) as connection:
            hour = await rows_of(connection, SQL["by_minute"], {})
            by_group = await rows_of(connection, SQL["by_group"], most)
            by_key = await rows_of(connection, SQL["by_key"], most)
            [day] = await rows_of(connection, SQL["day"], {})
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
