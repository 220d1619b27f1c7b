"""The service under a state machine: the API over ASGI, the checks, and PostgreSQL below both."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import httpx2
from aiohttp import web

from checker.maintenance.retention import Retirer
from outbox.checks.producer_group import OnCheckMax, ProducerGroup
from outbox.failpoints import arm
from outbox.http_checks.endpoint import HttpCheckEndpoint
from outbox.messages.message_id import parse_message_id
from outbox.postgres.maintenance.retention import PostgresRetirement
from outbox.postgres.sessions.connections import Pool, make_pool
from tests.contract.fixtures_memory_topics import MemoryTopicCatalogue
from tests.contract.service.fixtures_service_model import (
    BUSY,
    CHECK_MAX,
    IMMUNITY,
    INTERVAL,
    MAX_AGE,
    NOT_FOUND,
    SILENT,
)
from tests.integration.api.fixtures_service import HALVES, TOPIC, Service, running, settings_for
from tests.integration.checker.fixtures_checks import LOOPBACK_ALLOWED, World
from tests.integration.checker.fixtures_producer import Check, Producer, status, verdict
from tests.unit.checker.checks.fixtures_fakes import FreeLocks

PAST = """
UPDATE outbox.half_message SET prepared_at = prepared_at - %(by)s * interval '1 second';
UPDATE outbox.check_attempt SET asked_at = asked_at - %(by)s * interval '1 second';
UPDATE outbox.recheck SET rechecked_at = rechecked_at - %(by)s * interval '1 second';
UPDATE outbox.check_queue SET due_at = due_at - %(by)s * interval '1 second',
    age_from = age_from - %(by)s * interval '1 second';
"""
NEXT_LEAF = """
UPDATE outbox.installation SET base = base + (1 << 20);
SELECT outbox.create_leaves(1)
"""
PUBLISHED = """
INSERT INTO outbox.progress (name, position)
SELECT 'relay:' || shard, outbox.watermark() FROM generate_series(0, 15) AS shard
ON CONFLICT (name) DO UPDATE SET position = EXCLUDED.position
"""
UNDECIDED = """
SELECT outbox.message_id(half_id, nonce)::text FROM outbox.half_message
WHERE leader_id IS NULL AND half_id NOT IN (SELECT half_id FROM outbox.op_message)
"""
LISTED = """
SELECT (SELECT count(*) FROM outbox.commit_log WHERE %(half)s = ANY (half_ids)),
    EXISTS (SELECT FROM outbox.op_message
        WHERE half_id = %(half)s AND decision = 1 AND xid >> 20 = ANY (%(gone)s))
"""
LEAF_SHIFT = 35
SETTLED = "SELECT pg_snapshot_xmin(s) = pg_snapshot_xmax(s) FROM pg_current_snapshot() AS s"
"""No transaction is open: the server's own vacuum also makes the sweep wait."""
ROUNDS = 50
CALLS = 4
"""The limit of concurrent checks: all programs share one loop, and a call has a deadline."""
CALL_SECONDS = 30


class PatientRetirement(PostgresRetirement):
    """Retries while another session, for example a vacuum, holds a leaf for a moment."""

    async def remove(self, leaf: int) -> bool:
        """Remove a leaf; retry while it is locked."""
        for _ in range(ROUNDS):
            if await super().remove(leaf):
                return True
        return False


@dataclass(slots=True)
class ServicePlace:
    """One database; API and checker can be restarted at any moment."""

    database_url: str
    answers: dict[str, str] = field(default_factory=dict)
    """The producers' answer for each message."""
    _gone: set[int] = field(default_factory=set)
    """The leaves that were retired."""
    _outer: AsyncExitStack = field(default_factory=AsyncExitStack)
    _api: AsyncExitStack = field(default_factory=AsyncExitStack)
    _pool: Pool | None = None
    _endpoint: HttpCheckEndpoint | None = None
    _producer: Producer | None = None
    _service: Service | None = None

    async def open(self) -> None:
        """Open the database and the service."""
        pool = make_pool(self.database_url, "stateful", pool_max=3, pool_min=1)
        self._pool = await self._outer.enter_async_context(pool)
        self._endpoint = HttpCheckEndpoint(LOOPBACK_ALLOWED)
        self._producer = await self._outer.enter_async_context(Producer(self._answer))
        await self._start()

    async def close(self) -> None:
        """Close everything."""
        arm(None)
        await self._api.aclose()
        await self._outer.aclose()

    async def restart(self) -> None:
        """Stop the API cleanly and start it again."""
        await self._api.aclose()
        await self._start()

    async def register(self, name: str, *, rolls_back: bool) -> ProducerGroup:
        """Register a group whose checks this object answers."""
        assert self._producer is not None
        return await self.checker().group(
            self._producer.url,
            name,
            check_interval_seconds=INTERVAL,
            check_max=CHECK_MAX,
            transaction_timeout_seconds=IMMUNITY,
            max_age_seconds=MAX_AGE,
            check_timeout_seconds=CALL_SECONDS,
            on_check_max=OnCheckMax.ROLLBACK if rolls_back else OnCheckMax.PARK,
        )

    async def call(self, path: str, body: dict[str, Any]) -> httpx2.Response:
        """Say something about half messages."""
        assert self._service is not None
        return await self._service.client.post(f"{HALVES}{path}", json=body)

    async def read(self, message_id: str) -> dict[str, Any]:
        """Return a message as the API shows it."""
        assert self._service is not None
        shown: dict[str, Any] = (await self._service.client.get(f"{HALVES}/{message_id}")).json()
        return shown

    async def pass_time(self, seconds: int) -> None:
        """Let time pass for everything that is stored."""
        await self.checker().execute(PAST, by=seconds)

    async def sweep(self) -> None:
        """Sweep until no half is left."""
        world = self.checker()
        await self._settled(world)
        for _ in range(ROUNDS):
            if not await world.sweep():
                return
        raise AssertionError("the sweep comes to no end")

    async def check(self, group: ProducerGroup) -> None:
        """Sweep, then run rounds until nothing is due."""
        await self.sweep()
        world = self.checker()
        for _ in range(ROUNDS):
            done = await world.check(group)
            if not (done.asked or done.decided or done.put_back or done.parked or done.dropped):
                return
        raise AssertionError("the rounds come to no end")

    async def next_leaf(self) -> None:
        """Let all new rows go to a new leaf."""
        await self.checker().execute(NEXT_LEAF)

    async def retire(self) -> set[int]:
        """Publish the committed messages, then retire without retention; return the leaves."""
        assert self._pool is not None
        await self.sweep()
        await self.checker().execute(PUBLISHED)
        await self.next_leaf()
        retirement = PatientRetirement(self._pool, retention_seconds=0)
        removed = set(await Retirer(retirement, FreeLocks(), self.checker().metrics).retire())
        self._gone |= removed
        return removed

    async def attempts(self, message_id: str) -> list[tuple[int, str, bool]]:
        """Return the stored checks: attempt, outcome, whether spent."""
        rows = await self.checker().rows(
            "SELECT attempt, outcome, counted FROM outbox.check_attempt"
            " WHERE half_id = %(half)s ORDER BY look_id",
            half=parse_message_id(message_id)[0],
        )
        return [(attempt, outcome, counted) for attempt, outcome, counted in rows]

    async def undecided(self) -> list[str]:
        """Return the undecided messages, also those whose producer got no answer."""
        return [message_id for (message_id,) in await self.checker().rows(UNDECIDED)]

    async def listed(self, message_id: str) -> int:
        """Return how often the commit log lists a message, or did before its leaf was retired."""
        half, gone = parse_message_id(message_id)[0], list(self._gone)
        ((listed, was_listed),) = await self.checker().rows(LISTED, half=half, gone=gone)
        return int(listed) + int(was_listed)

    def checker(self) -> World:
        """Return a new checker without knowledge of earlier calls."""
        assert self._pool is not None
        assert self._endpoint is not None
        return World(self._pool, self._pool, self._endpoint, CALLS)

    async def _settled(self, world: World) -> None:
        async with asyncio.timeout(60):
            while not (await world.rows(SETTLED))[0][0]:
                pass

    async def _start(self) -> None:
        catalogue = MemoryTopicCatalogue(counts={TOPIC: 3})
        service = running(settings_for(self.database_url, database_pool_max=3), catalogue)
        self._service = await self._api.enter_async_context(service)

    async def _answer(self, request: web.Request, check: Check) -> web.StreamResponse:
        said = self.answers.get(check["message_id"], "UNKNOWN")
        if said == SILENT:
            assert request.transport is not None
            request.transport.close()
        if said in (NOT_FOUND, BUSY, SILENT):
            return await status(int(said) if said != SILENT else 200)(request, check)
        return verdict(check, said)


def leaf_of(message_id: str) -> int:
    """Return the leaf of a message."""
    return parse_message_id(message_id)[0] >> LEAF_SHIFT
