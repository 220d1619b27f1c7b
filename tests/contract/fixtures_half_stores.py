"""The storage of a HalfStore, and how a new process opens it."""

from __future__ import annotations

from contextlib import AsyncExitStack
from copy import copy
from typing import Protocol

from outbox.messages.message_id import HalfId
from outbox.messages.ports import HalfStore
from outbox.postgres.messages.half_store import PostgresHalfStore
from outbox.postgres.sessions.connections import PLAN_ONCE, connect, make_pool
from tests.contract.fixtures_memory_store import MemoryHalfStore


class Place(Protocol):
    """The storage of a store; it outlives the store."""

    async def open(self) -> HalfStore:
        """Return a new store, as in a new process."""

    async def close(self) -> None:
        """Close the store, as its process ends."""

    def commit_log(self) -> list[HalfId]:
        """Return every id of the commit log, in order within each shard."""


class MemoryPlace:
    """Dictionaries that a new store finds again."""

    def __init__(self) -> None:
        self._store = MemoryHalfStore()

    async def open(self) -> HalfStore:
        """Return a store over the same dictionaries."""
        self._store = copy(self._store)
        return self._store

    async def close(self) -> None:
        """Nothing is held."""

    def commit_log(self) -> list[HalfId]:
        """Return the list itself."""
        return self._store.commit_log


class PostgresPlace:
    """A database; each store has its own pool."""

    def __init__(self, database_url: str) -> None:
        self._url = database_url
        self._stack = AsyncExitStack()

    async def open(self) -> HalfStore:
        """Return a store on new connections."""
        pool = make_pool(self._url, "stateful", pool_max=3, pool_min=1, plans=PLAN_ONCE)
        return PostgresHalfStore(await self._stack.enter_async_context(pool))

    async def close(self) -> None:
        """Close the connections."""
        await self._stack.aclose()

    def commit_log(self) -> list[HalfId]:
        """Read the table."""
        with connect(self._url, "stateful") as connection:
            rows = connection.execute(
                "SELECT i.half_id FROM outbox.commit_log l,"
                " unnest(l.half_ids) WITH ORDINALITY AS i (half_id, n) ORDER BY l.xid, i.n"
            )
            return [row[0] for row in rows]
