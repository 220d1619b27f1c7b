"""Interned names: hot rows have numbers instead of the names of producer groups and topics."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from psycopg.rows import dict_row

from outbox.checks.producer_group import ProducerGroup
from outbox.postgres.schema.group_rows import read_group
from outbox.postgres.sessions.availability import available
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import Pool

SQL: Final = load(__name__)


class PostgresInternedNames:
    """The InternedNames on a pool of connections."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def groups(self, names: Collection[str]) -> dict[str, ProducerGroup]:
        """Return registered groups by name; see InternedNames.groups."""
        async with (
            available(),
            self._pool.connection() as connection,
            connection.cursor(row_factory=dict_row) as cursor,
        ):
            await cursor.execute(SQL["groups"], {"names": list(names)})
            return {row["name"]: read_group(row, ()) for row in await cursor.fetchall()}

    async def group_names(self, ids: Collection[int]) -> dict[int, str]:
        """Return group names by id; see InternedNames.group_names."""
        async with available(), self._pool.connection() as connection:
            cursor = await connection.execute(SQL["group_names"], {"ids": list(ids)})
            return {row[0]: row[1] for row in await cursor.fetchall()}

    async def group_ids(self, names: Collection[str]) -> dict[str, int]:
        """Return group ids by name; see InternedNames.group_ids."""
        async with available(), self._pool.connection() as connection:
            cursor = await connection.execute(SQL["group_ids"], {"names": list(names)})
            return {row[0]: row[1] for row in await cursor.fetchall()}

    async def intern_topics(self, names: Collection[str]) -> dict[str, int]:
        """Return the ids of topics; see InternedNames.intern_topics."""
        wanted = sorted(set(names))
        async with available(), self._pool.connection() as connection:
            cursor = await connection.execute(SQL["topics"], {"names": wanted})
            known = {row[0]: row[1] for row in await cursor.fetchall()}
            new = [name for name in wanted if name not in known]
            if new:
                await connection.execute(SQL["intern_topics"], {"names": new})
                cursor = await connection.execute(SQL["topics"], {"names": new})
                known.update({row[0]: row[1] for row in await cursor.fetchall()})
        return known
