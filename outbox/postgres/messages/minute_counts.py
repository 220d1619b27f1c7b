"""Adds to the counts of the present minute, by group; see outbox.operators.activity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from sqlalchemy import func
from sqlalchemy.dialects.postgresql import insert

from outbox.postgres.schema.tables import activity
from outbox.postgres.sessions.composed import run

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AsyncConnection

THIS_MINUTE: Final = func.date_trunc("minute", func.clock_timestamp())


async def count(connection: AsyncConnection, group_ids: Sequence[int], *names: str) -> None:
    """Count messages of these groups in the caller's transaction."""
    await add_counts(
        connection,
        {(group, ""): dict.fromkeys(names, number) for group, number in Counter(group_ids).items()},
    )


async def add_counts(
    connection: AsyncConnection, counts: Mapping[tuple[int, str], Mapping[str, int]]
) -> None:
    """Add counts of groups and keys to the present minute, in order: no two wait for each other."""
    if not counts:
        return
    names = {name for each in counts.values() for name in each}
    added = insert(activity).values(
        [
            {"minute": THIS_MINUTE, "producer_group_id": group, "key_id": key}
            | {name: each.get(name, 0) for name in names}
            for (group, key), each in sorted(counts.items())
        ]
    )
    summed = {name: activity.c[name] + added.excluded[name] for name in names}
    await run(connection, added.on_conflict_do_update(constraint="pk_activity", set_=summed))
