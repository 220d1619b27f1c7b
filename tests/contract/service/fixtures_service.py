"""The service under a state machine: the API over ASGI, the checks, and PostgreSQL below both."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import httpx2
from aiohttp import web

from outbox.checks.producer_group import OnCheckMax, ProducerGroup
from outbox.failpoints import arm
from outbox.http_checks.endpoint import HttpCheckEndpoint
from outbox.postgres.sessions.connections import Pool, make_pool
from tests.contract.fixtures_memory_topics import MemoryTopicCatalogue
from tests.integration.api.fixtures_service import HALVES, TOPIC, Service, running, settings_for
from tests.integration.checker.fixtures_checks import LOOPBACK_ALLOWED, World
from tests.integration.checker.fixtures_producer import Check, Producer, verdict

IMMUNITY, INTERVAL, CHECK_MAX, MAX_AGE = 600, 1000, 3, 6600
"""Of the groups; seconds but for the number of checks."""
PAST = """
UPDATE outbox.half_message SET prepared_at = prepared_at - %(by)s * interval '1 second';
UPDATE outbox.parked_message SET prepared_at = prepared_at - %(by)s * interval '1 second';
UPDATE outbox.check_attempt SET asked_at = asked_at - %(by)s * interval '1 second';
UPDATE outbox.recheck SET rechecked_at = rechecked_at - %(by)s * interval '1 second';
UPDATE outbox.check_queue SET due_at = due_at - %(by)s * interval '1 second',
    age_from = age_from - %(by)s * interval '1 second';
"""
PUBLISHED = """
INSERT INTO outbox.progress (name, position)
SELECT 'relay:' || shard, outbox.watermark() FROM generate_series(0, 15) AS shard
ON CONFLICT (name) DO UPDATE SET position = EXCLUDED.position
"""
SETTLED = "SELECT pg_snapshot_xmin(s) = pg_snapshot_xmax(s) FROM pg_current_snapshot() AS s"
"""No transaction is open: the server's own vacuum also makes the sweep wait."""
ROUNDS = 50
CALLS = 4
"""The limit of concurrent checks: all programs share one loop, and a call has a deadline."""
CALL_SECONDS = 30


@dataclass(slots=True)
class ServicePlace:
    """One database; API and checker can be restarted at any moment."""

    database_url: str
    answers: dict[str, str] = field(default_factory=dict)
    """The producers' answer for each message."""
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
            if not (await world.sweep()).looked:
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
        return verdict(check, self.answers.get(check["message_id"], "UNKNOWN"))
