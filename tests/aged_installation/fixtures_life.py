"""One installation that lives: its stores, and what time and retention do to them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import psycopg
from msgspec.structs import replace

from benchmarks.load.committed import register
from outbox.messages.message import End, HalfMessage, Prepared, Resolution
from outbox.postgres.checks.sweep import PostgresSweep
from outbox.postgres.maintenance.retention import PostgresRetirement
from outbox.postgres.messages.half_store import PostgresHalfStore
from outbox.postgres.sessions.connections import Pool, make_pool

DAY = 86_400
RETENTION = 7 * DAY
LEAF_XIDS = 1 << 20
TIMES = {
    "half_message": "prepared_at",
    "op_message": "decided_at",
    "commit_log": "committed_at",
    "publication_log": "published_at",
    "parked_message": "parked_at",
}
"""The stored times that retention compares with the present."""
PARK = """
INSERT INTO outbox.parked_message
    (half_id, producer_group_id, parked_at, parked_reason, check_count)
SELECT half_id, producer_group_id, clock_timestamp(), 'check_max', 15
FROM outbox.half_message h WHERE h.half_id = ANY (%s)
"""

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """One installation."""

    database_url: str

    def execute(self, statement: str, *parameters: object) -> None:
        """Run one statement in a transaction of its own."""
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            connection.execute(statement.encode(), parameters)

    def rows(self, query: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        with psycopg.connect(self.database_url) as connection:
            return connection.execute(query.encode(), parameters).fetchall()

    def prepare(self, topic: str, *values: bytes) -> list[HalfMessage]:
        """Store a half message for each value, in one flush."""
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            template = register(connection, topic)
        messages = [replace(template, topic=topic, key=value, value=value) for value in values]
        answers = self.run(lambda pool: PostgresHalfStore(pool).prepare(messages))
        return [answer.half for answer in answers if isinstance(answer, Prepared)]

    def end(self, halves: Sequence[HalfMessage], decision: Resolution) -> None:
        """Decide half messages as their producer does."""
        ends = [End(half_id=h.half_id, nonce=h.nonce, decision=decision) for h in halves]
        self.run(lambda pool: PostgresHalfStore(pool).end(ends))

    def park(self, halves: Sequence[HalfMessage]) -> None:
        """Park half messages, as after their last check."""
        self.execute(PARK, [half.half_id for half in halves])

    def pass_leaves(self, leaves: int, ahead: int) -> None:
        """Let the xids of this many leaves pass; a higher base is the same to an installation."""
        move = "UPDATE outbox.installation SET base = base + %s"
        self.execute(move, leaves * LEAF_XIDS)
        if ahead:
            self.execute("SELECT outbox.create_leaves(%s)", ahead)

    def pass_time(self, seconds: int) -> None:
        """Let seconds pass: move the stored times into the past."""
        for table, column in TIMES.items():
            moved = f"{column} = {column} - make_interval(secs => %s)"
            self.execute(f"UPDATE outbox.{table} SET {moved}", seconds)

    def sweep(self) -> None:
        """Sweep until nothing is left that a sweep may look at."""
        while self.run(lambda pool: PostgresSweep(pool).sweep(4096)):
            pass

    def retire(self) -> list[int]:
        """Remove every leaf that waits for nothing, as the checker does; return their numbers."""
        return self.run(_retire)

    def run(self, call: Callable[[Pool], Awaitable[Result]]) -> Result:
        """Run a call of an asynchronous adapter on a pool of its own."""

        async def with_pool() -> Result:
            async with make_pool(self.database_url, "aged", pool_max=2) as pool:
                return await call(pool)

        with ThreadPoolExecutor(1) as beside:  # a first test may have its loop already
            return beside.submit(asyncio.run, with_pool()).result()


async def _retire(pool: Pool) -> list[int]:
    retirement = PostgresRetirement(pool, retention_seconds=RETENTION)
    free = [each for each in await retirement.leaves() if await retirement.waits_for(each) is None]
    return [each for each in free if await retirement.remove(each)]
