"""The stores of one installation, and what happens to them in its life: writes, time, retention."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import psycopg
from msgspec.structs import replace

from benchmarks.load.committed import commit_directly, register
from outbox.messages.message import Content, End, HalfMessage, Message, Prepared, Resolution
from outbox.messages.message_id import HalfId
from outbox.postgres.checks.sweep import PostgresSweep
from outbox.postgres.maintenance.retention import PostgresRetirement
from outbox.postgres.messages.half_store import PostgresHalfStore
from outbox.postgres.sessions.connections import Pool, make_pool
from tests.fixtures_databases import LOOKED_AT

DAY = 86_400
RETENTION = 7 * DAY
TIMES = {
    "half_message": ("prepared_at",),
    "op_message": ("decided_at",),
    "commit_log": ("committed_at",),
    "publication_log": ("published_at",),
    "check_attempt": ("asked_at",),
    "check_queue": ("age_from", "due_at"),
    "parked_message": ("prepared_at", "parked_at"),
    "held_record": ("held_at",),
    "already_published": ("found_at",),
    "producer_group": ("created_at", "updated_at", "deleted_at"),
    "api_key": ("created_at", "expires_at", "revoked_at"),
    "audit_log": ("at",),
    "progress": ("updated_at",),
    "clock_step": ("noticed_at",),
    "installation": ("created_at",),
    "topic": ("created_at",),
    "reconciliation_run": ("started_at", "cut_at", "finished_at"),
    "reconciliation_finding": ("found_at", "updated_at"),
    "reconciliation_finding_event": ("happened_at",),
}
"""Every stored time that a rule compares with the present. Accepted findings stay accepted."""

_OPEN = """
SELECT h.half_id, h.nonce FROM outbox.half_message h
JOIN outbox.producer_group g ON g.id = h.producer_group_id AND g.name = %s
WHERE NOT EXISTS (SELECT FROM outbox.op_message o WHERE o.half_id = h.half_id)
"""

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """One installation: its database and, for what needs it, its broker."""

    database_url: str
    bootstrap_servers: str = ""

    def connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        """Return a session in which each statement is a transaction of its own."""
        return psycopg.connect(self.database_url, autocommit=True)

    def execute(self, statement: str, *parameters: object) -> None:
        """Run one statement in a transaction of its own."""
        with self.connect() as connection:
            connection.execute(statement.encode(), parameters)

    def rows(self, query: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        with self.connect() as connection:
            return connection.execute(query.encode(), parameters).fetchall()

    def template(self, group: str, topic: str) -> Message:
        """Return a message of this group for this topic; both are stored if they are new."""
        with self.connect() as connection:
            return register(connection, topic, group)

    def commit(self, template: Message, count: int, shard: int | None = None) -> list[HalfId]:
        """Store and commit messages with different keys in one flush, all in a shard if named."""
        with self.connect() as connection:
            return commit_directly(connection, messages_like(template, count), shard)

    def prepare(self, template: Message, count: int) -> list[HalfMessage]:
        """Store half messages with different keys in one flush."""
        messages = messages_like(template, count)
        answers = self.run(lambda pool: PostgresHalfStore(pool).prepare(messages))
        return [answer.half for answer in answers if isinstance(answer, Prepared)]

    def end(self, halves: Sequence[HalfMessage], decision: Resolution) -> None:
        """Decide half messages as their producer does."""
        self._end([(half.half_id, half.nonce) for half in halves], decision)

    def end_open(self, group: str, decision: Resolution) -> None:
        """Decide every open half message of a group."""
        self._end(self.rows(_OPEN, group), decision)

    def pass_time(self, seconds: int) -> None:
        """Let so many seconds pass: move every stored time into the past; a checker looks on."""
        with psycopg.connect(self.database_url) as connection:
            for table, columns in TIMES.items():
                moved = ", ".join(f"{c} = {c} - make_interval(secs => %(by)s)" for c in columns)
                connection.execute(f"UPDATE outbox.{table} SET {moved}".encode(), {"by": seconds})
            connection.execute(LOOKED_AT)

    def sweep(self) -> None:
        """Sweep until nothing is left that a sweep may look at."""
        while self.run(lambda pool: PostgresSweep(pool).sweep(4096)).looked:
            pass

    def retire(self) -> list[int]:
        """Remove every leaf that waits for nothing, as the checker does; return their numbers."""
        return self.run(_retire)

    def _end(self, ids: Sequence[tuple[Any, ...]], decision: Resolution) -> None:
        ends = [End(half_id=each, nonce=nonce, decision=decision) for each, nonce in ids]
        self.run(lambda pool: PostgresHalfStore(pool).end(ends))

    def run(self, call: Callable[[Pool], Awaitable[Result]]) -> Result:
        """Run a call of an asynchronous adapter on a pool of its own."""

        async def with_pool() -> Result:
            async with make_pool(self.database_url, "aged", pool_max=2) as pool:
                return await call(pool)

        with ThreadPoolExecutor(1) as beside:  # a first test may have its loop already
            return beside.submit(asyncio.run, with_pool()).result()


def messages_like(template: Message, count: int) -> list[Message]:
    """Return messages with different keys and values."""
    return [
        replace(
            template,
            content=Content(
                topic=template.content.topic,
                key=f"member-{n}".encode(),
                value=f'{{"points":{n}}}'.encode(),
            ),
        )
        for n in range(count)
    ]


async def _retire(pool: Pool) -> list[int]:
    retirement = PostgresRetirement(pool, retention_seconds=RETENTION, hold_seconds=DAY)
    free = [each for each in await retirement.leaves() if await retirement.waits_for(each) is None]
    return [each for each in free if await retirement.remove(each)]
