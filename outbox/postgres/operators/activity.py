"""Adds what the programs did to one row a minute and group, and reads the last hour and day."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from psycopg.types.json import Jsonb
from sqlalchemy import Select, func, select

from outbox.checks.check_round import Outcome
from outbox.messages.message import Resolution
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
from outbox.postgres.operators.composed import run
from outbox.postgres.schema.operator_tables import activity
from outbox.postgres.schema.tables import producer_group
from outbox.postgres.sessions.availability import available
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AnyPool, AsyncConnection

SQL: Final = load(__name__)
GROUPS: Final = 50
"""The most groups of a reading."""
SERIES: Final = ("prepared", "committed", "published", "checked")
CHECKED: Final = tuple(name for name in COUNTS if name.startswith(CHECK))
MINUTE: Final = timedelta(minutes=1)


class PostgresActivity:
    """The ActivityLog on a pool of connections."""

    def __init__(self, pool: AnyPool) -> None:
        self._pool = pool

    async def add(self, growth: Growth) -> None:
        """Add counts to the present minute; see ActivityLog.add. Forgets what is old."""
        rows = [{"producer_group": group, **counts} for group, counts in growth.items()]
        async with (
            available(),
            self._pool.connection() as connection,
            connection.transaction(),
        ):
            await connection.execute("SET LOCAL synchronous_commit = off")
            await connection.execute(SQL["add"], {"rows": Jsonb(rows)})
            await connection.execute(SQL["forget"])

    async def last_hour(self) -> LastHour:
        """Return the last hour; see ActivityLog.last_hour."""
        async with (
            available(),
            self._pool.connection() as connection,
            connection.transaction(),
        ):
            [(now,)] = await (await connection.execute(SQL["minute"])).fetchall()
            since = now - (MINUTES - 1) * MINUTE
            minutes = await run(
                connection, _sums(since).add_columns(activity.c.minute).group_by("minute")
            )
            groups = await run(connection, _by_group(since))
            live = await run(connection, _sums(now - (LIVE_MINUTES - 1) * MINUTE))
            day = await run(connection, _sums(now - timedelta(days=1)))
        return LastHour(
            begins_at=since,
            series=tuple(_series(name, since, minutes) for name in SERIES),
            groups=tuple(
                GroupActivity(
                    producer_group=row["producer_group"],
                    counts={name: int(row[name]) for name in COUNTS},
                )
                for row in groups
            ),
            outcomes=tuple(_outcomes(live[0], day[0])),
        )


async def count_decisions(
    connection: AsyncConnection, group_ids: Sequence[int], decision: Resolution
) -> None:
    """Count an operator's decisions in their transaction, by the group of each message."""
    name = "committed" if decision is Resolution.COMMIT else "rolled_back"
    await connection.execute(SQL[f"count_{name}"], {"group_ids": list(group_ids)})


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


def _outcomes(live: dict[str, Any], day: dict[str, Any]) -> list[OutcomeCount]:
    """Return the counts of each outcome that there is, in the order of their definition."""
    return [
        OutcomeCount(outcome=each.value, live=int(live[name]), day=int(day[name]))
        for each in Outcome
        if day[name := CHECK + each.value]
    ]
