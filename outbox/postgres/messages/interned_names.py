"""Interned names: hot rows have numbers instead of the names of producer groups and topics."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final

from outbox.checks.producer_group import ProducerGroup
from outbox.postgres.schema.group_rows import read_group
from outbox.postgres.sessions.availability import lent
from outbox.postgres.sessions.reads import rows_from
from outbox.postgres.sessions.statements import load

if TYPE_CHECKING:
    from outbox.postgres.sessions.connections import AnyPool

SQL: Final = load(__name__)


class PostgresInternedNames:
    """The names on a pool of connections. Methods raise DatabaseUnavailable."""

    def __init__(self, pool: AnyPool) -> None:
        self._pool = pool

    async def groups(self, names: Collection[str]) -> dict[str, ProducerGroup]:
        """Return those of these groups that are registered, without their secrets."""
        rows = await rows_from(self._pool, SQL["groups"], {"asked": list(names)})
        return {row["name"]: read_group(row) for row in rows}

    async def group_names(self, ids: Collection[int]) -> dict[int, str]:
        """Return group names by id, deleted groups included."""
        return await self._pairs("group_names", ids)

    async def group_ids(self, names: Collection[str]) -> dict[str, int]:
        """Return group ids by name, deleted groups included: their messages still have them."""
        return await self._pairs("group_ids", names)

    async def intern_topics(self, names: Collection[str]) -> dict[str, int]:
        """Return the ids of these topics; new names get new ids."""
        known = await self._pairs("topics", names)
        if new := set(names) - known.keys():
            await self._pairs("intern_topics", new)
            known |= await self._pairs("topics", new)
        return known

    async def _pairs(self, statement: str, asked: Collection[Any]) -> dict[Any, Any]:
        async with lent(self._pool) as connection:
            cursor = await connection.execute(SQL[statement], {"asked": list(asked)})
            return dict(await cursor.fetchall())
