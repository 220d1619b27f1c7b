"""The whole check path on a new database: real tables, real calls, time that the test sets.

Time passes by moving all stored times into the past. That is the same for rules that read only
PostgreSQL's clock.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from psycopg.conninfo import make_conninfo

from checker.checks.check_back import CheckBack, CheckRound
from checker.checks.check_caller import CheckCaller
from checker.checks.check_observer import CheckObserver
from checker.checks.fair_semaphore import FairSemaphore
from checker.checks.sweeper import SLICE_HALVES
from outbox.checks.breaker import BreakerState
from outbox.checks.producer_group import ProducerGroup
from outbox.checks.ssrf_guard import SsrfPolicy, policy_of
from outbox.clock import SystemClock
from outbox.errors import CursorMoved
from outbox.http_checks.endpoint import HttpCheckEndpoint
from outbox.messages.message import (
    End,
    EndOutcome,
    HalfMessage,
    MessageStatus,
    Prepared,
    Resolution,
    State,
)
from outbox.postgres.checks.check_queue import PostgresCheckQueue
from outbox.postgres.checks.sweep import PostgresSweep
from outbox.postgres.messages.half_store import PostgresHalfStore
from outbox.postgres.messages.message_status import statuses_now
from outbox.postgres.sessions.connections import Pool, make_pool
from outbox.telemetry.metrics import Metrics
from tests.fixtures_messages import make_group, make_message, store_group, store_topic

LOOPBACK_ALLOWED = policy_of(["127.0.0.0/8"], [], ["1-65535"])
PAST = """
UPDATE outbox.half_message SET prepared_at = prepared_at - %(by)s * interval '1 second';
UPDATE outbox.check_queue SET due_at = due_at - %(by)s * interval '1 second',
    age_from = age_from - %(by)s * interval '1 second';
UPDATE outbox.check_breaker SET probe_at = probe_at - %(by)s * interval '1 second';
UPDATE outbox.progress SET updated_at = updated_at - %(by)s * interval '1 second'
WHERE name LIKE 'failing:%%';
"""
RECHECK = """
WITH raised AS (
    INSERT INTO outbox.recheck AS r (half_id, round, rechecked_at)
    VALUES (%(half)s, 2, clock_timestamp())
    ON CONFLICT (half_id) DO UPDATE SET round = r.round + 1 RETURNING round
), resumed AS (
    UPDATE outbox.parked_message SET resumed_at = clock_timestamp() WHERE half_id = %(half)s
), opened AS (
    INSERT INTO outbox.check_class (producer_group_id, delay_seconds) VALUES (%(group)s, 0)
    ON CONFLICT DO NOTHING
)
INSERT INTO outbox.check_queue (
    producer_group_id, delay_seconds, id, half_id, round, age_from, due_at)
SELECT %(group)s, 0, outbox.current_xid() << 15, %(half)s, round, clock_timestamp(),
    clock_timestamp()
FROM raised
"""


class World:
    """The check path of one test, with the checker's role; ``pool`` may do everything."""

    first_leaf = 0
    """The first leaf that the test writes to."""

    def __init__(
        self,
        pool: Pool,
        checker: Pool,
        endpoint: HttpCheckEndpoint,
        limit: int,
        metrics: Metrics | None = None,
    ) -> None:
        self.pool, self.checker = pool, checker
        self.metrics = metrics or Metrics()
        self.store = PostgresHalfStore(checker)
        self.queue = PostgresCheckQueue(checker, lambda secret, _: secret.decode())
        observer, clock = CheckObserver(self.metrics), SystemClock()
        caller = CheckCaller(endpoint, FairSemaphore(limit), clock, observer, batch_max=100)
        self.check_back = CheckBack(self.queue, caller, observer)

    async def group(self, url: str, name: str = "account", **fields: Any) -> ProducerGroup:
        """Register a producer group with RocketMQ's defaults."""
        secret = fields.pop("secret", b"")
        return await store_group(self.pool, make_group(name, check_url=url, **fields), secret)

    async def prepare(
        self, group: ProducerGroup, count: int = 1, **fields: Any
    ) -> list[HalfMessage]:
        """Store some half messages."""
        topic_id = await store_topic(self.pool, "points-earned")
        message = make_message(group, topic_id=topic_id, **fields)
        outcomes = await self.store.prepare([message] * count)
        return [outcome.half for outcome in outcomes if isinstance(outcome, Prepared)]

    async def end(self, half: HalfMessage, decision: str) -> EndOutcome:
        """End a half message as its producer does."""
        end = End(half_id=half.half_id, nonce=half.nonce, decision=Resolution(decision))
        (outcome,) = await self.store.end([end])
        return outcome

    async def pass_time(self, seconds: float) -> None:
        """Move all stored times into the past."""
        await self.execute(PAST, by=seconds)

    async def sweep(self, limit: int = SLICE_HALVES) -> int:
        """Run one sweep; it does nothing when another sweep is faster."""
        try:
            return await PostgresSweep(self.checker).sweep(limit)
        except CursorMoved:
            return 0

    async def check(self, group: ProducerGroup) -> CheckRound:
        """Run one round of check-backs of a group."""
        return await self.check_back.run_once(group.id)

    async def due(self, group: ProducerGroup, count: int = 1, **fields: Any) -> list[HalfMessage]:
        """Prepare halves, let their immunity pass and sweep them."""
        halves = await self.prepare(group, count, **fields)
        await self.pass_time(group.transaction_timeout_seconds)
        await self.sweep()
        return halves

    async def recheck(self, half: HalfMessage) -> None:
        """Write to the tables as an operator's recheck does."""
        await self.execute(RECHECK, half=half.half_id, group=half.message.producer_group_id)

    async def status(self, half: HalfMessage) -> MessageStatus:
        """Return the status of a message."""
        found = await statuses_now(self.pool, [half.half_id])
        assert half.half_id in found, "the message is not known any more"
        return found[half.half_id]

    async def states(self, halves: Sequence[HalfMessage]) -> list[State]:
        """Return the states of messages, in order."""
        found = await statuses_now(self.pool, sorted(half.half_id for half in halves))
        assert {half.half_id for half in halves} <= found.keys(), "messages are not known any more"
        return [found[half.half_id].state for half in halves]

    async def rows(self, query: str, **parameters: Any) -> list[tuple[Any, ...]]:
        """Read rows of any table."""
        async with self.pool.connection() as connection:
            cursor = await connection.execute(query.encode(), parameters)
            return await cursor.fetchall()

    async def execute(self, statements: str, **parameters: Any) -> None:
        """Run statements, one after the other."""
        async with self.pool.connection() as connection:
            for statement in filter(str.strip, statements.split(";")):
                await connection.execute(statement.encode(), parameters)

    async def attempts(self, half: HalfMessage) -> list[tuple[Any, ...]]:
        """Return the history of a half's checks: attempt, outcome, counted, applied."""
        return await self.rows(
            "SELECT attempt, outcome, counted, applied FROM outbox.check_attempt"
            " WHERE half_id = %(half)s ORDER BY look_id",
            half=half.half_id,
        )

    async def breaker(self, group: ProducerGroup) -> BreakerState:
        """Return the state of a group's breaker, as a poll of all groups reads it."""
        due = {each.producer_group_id: each.breaker for each in await self.queue.due_groups()}
        return due[group.id]

    async def waiting(self, half: HalfMessage) -> tuple[int, int, float]:
        """Return (delay class, check count, seconds until due) of a half's newest queue row."""
        (row,) = await self.rows(
            "SELECT delay_seconds, check_count,"
            " extract(epoch FROM due_at - clock_timestamp())::float8"
            " FROM outbox.check_queue WHERE half_id = %(half)s ORDER BY id DESC LIMIT 1",
            half=half.half_id,
        )
        return row[0], row[1], row[2]


@asynccontextmanager
async def open_world(
    pool: Pool, *, policy: SsrfPolicy = LOOPBACK_ALLOWED, limit: int = 256
) -> AsyncIterator[World]:
    """Yield a world whose checks may go to loopback."""
    metrics = Metrics()
    role = make_conninfo(str(pool.conninfo), user="outbox_checker", password="outbox_checker")
    async with make_pool(role, "test", pool_max=10) as checker:
        yield World(pool, checker, HttpCheckEndpoint(policy), limit, metrics)
