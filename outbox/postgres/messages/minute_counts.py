"""Adds to the counts of the present minute, by group; see outbox.operators.activity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from psycopg.types.json import Jsonb

from outbox.operators.activity import COUNTS
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AsyncConnection

SQL: Final = load(__name__)
NONE: Final = dict.fromkeys(COUNTS, 0)


async def count(connection: AsyncConnection, group_ids: Sequence[int], *names: str) -> None:
    """Count messages of these groups in the caller's transaction."""
    await add_counts(
        connection,
        {(group, ""): dict.fromkeys(names, number) for group, number in Counter(group_ids).items()},
    )


async def add_counts(
    connection: AsyncConnection, counts: Mapping[tuple[int, str], Mapping[str, int]]
) -> None:
    """Add counts of groups and keys to the present minute."""
    rows = [
        {"producer_group_id": group, "key_id": key, **NONE, **each}
        for (group, key), each in counts.items()
    ]
    if rows:
        await connection.execute(SQL["add"], {"rows": Jsonb(rows)})
