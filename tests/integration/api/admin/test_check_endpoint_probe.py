"""POST /v1/producer-groups/{producer_group}/test sends a signed and a forged check only."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

import httpx2
import pytest
from aiohttp import web
from standardwebhooks import Webhook, WebhookVerificationError

from outbox.access import Scope
from outbox.clock import SystemClock
from outbox.postgres.sessions.connections import Pool
from tests.integration.api.fixtures_keys import guarded, token
from tests.integration.api.fixtures_rows import stored
from tests.integration.api.fixtures_service import GROUPS, Service
from tests.integration.checker.fixtures_producer import (
    Check,
    Producer,
    says,
    status,
    verdict,
)

pytestmark = pytest.mark.postgres


class Verifying:
    """An endpoint that answers requests signed by its secret and refuses all others."""

    def __init__(self) -> None:
        self.secret = ""
        self.accepted: list[Check] = []

    async def answer(self, request: web.Request, check: Check) -> web.StreamResponse:
        """Answer one check."""
        try:
            Webhook(self.secret).verify(await request.read(), dict(request.headers))
        except WebhookVerificationError:
            return web.Response(status=401)
        self.accepted.append(check)
        return verdict(check, "UNKNOWN")


async def test_an_endpoint_that_verifies_passes_and_decides_nothing(
    bare_service: Service, pool: Pool
) -> None:
    endpoint = Verifying()
    async with Producer(endpoint.answer) as producer:
        made = await bare_service.put_group(check_url=producer.url)
        endpoint.secret = made.json()["check_secret"]
        answer = await bare_service.client.post(f"{GROUPS}/billing/test")
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert found.pop("latency_ms") >= 0
    assert found == {
        "reachable": True,
        "signature_accepted": True,
        "forgery_refused": True,
        "outcome": "unknown",
    }
    assert (len(producer.asked), len(endpoint.accepted)) == (2, 1)
    assert producer.asked[0]["message_id"] == producer.asked[1]["message_id"]
    assert await stored(pool) == (0, 0, 0, 0)


class HourAhead(SystemClock):
    """The clock of a machine with a wrong time."""

    def now(self) -> datetime:
        """Return a time that no receiver accepts."""
        return super().now() + timedelta(hours=1)


async def test_an_endpoint_that_accepts_or_refuses_every_signature_is_reported(
    bare_service: Service, subtests: pytest.Subtests
) -> None:
    for name, producer, expected in (
        ("accepts any", Producer(says("COMMIT")), (True, True, False, "commit")),
        ("refuses all", Producer(status(401)), (True, False, True, "http_error")),
        ("is broken", Producer(status(500, "a secret")), (True, False, False, "http_error")),
    ):
        with subtests.test(name):
            async with producer:
                await bare_service.put_group(name.split()[-1], check_url=producer.url)
                answer = await bare_service.client.post(f"{GROUPS}/{name.split()[-1]}/test")
            found = answer.json()
            assert expected == (
                found["reachable"],
                found["signature_accepted"],
                found["forgery_refused"],
                found["outcome"],
            )
            assert "secret" not in answer.text


class Slow:
    """Answers when the test lets it."""

    def __init__(self) -> None:
        self._came: asyncio.Queue[Check] = asyncio.Queue()
        self.go_on = asyncio.Event()

    async def answer(self, _: web.Request, check: Check) -> web.StreamResponse:
        """Answer one check."""
        self._came.put_nowait(check)
        await self.go_on.wait()
        return verdict(check, "UNKNOWN")

    async def waiting(self, more: int) -> None:
        """Wait until so many more calls wait."""
        for _ in range(more):
            await self._came.get()


async def test_a_group_has_one_test_at_a_time_a_tenant_two_and_all_together_four(
    database_url: str, pool: Pool
) -> None:
    slow = Slow()
    names, more = [f"g{number}" for number in range(4)], ("second", "third")
    async with (
        guarded(database_url) as service,
        Producer(slow.answer) as producer,
        asyncio.timeout(120),
    ):
        client = service.client
        client.headers.update(await token(pool, Scope.ADMIN))
        for name in (*more, *names):
            await service.put_group(name, check_url=producer.url, check_timeout_seconds=30)
        tenants = [(names[0], *more), *((name,) for name in names[1:])]
        keys = [await token(pool, Scope.GROUPS_WRITE, groups=groups) for groups in tenants]

        async def tested(name: str, key: dict[str, str] | None = None) -> httpx2.Response:
            return await client.post(f"{GROUPS}/{name}/test", headers=key)

        tests = [asyncio.create_task(tested(names[0], keys[0]))]
        await slow.waiting(1)
        again = await tested(names[0])
        tests += [asyncio.create_task(tested("second", keys[0]))]
        await slow.waiting(1)
        another = asyncio.create_task(tested("third", keys[0]))
        asked = asyncio.create_task(slow.waiting(1))
        await asyncio.wait({another, asked}, return_when=asyncio.FIRST_COMPLETED)
        assert another.done()
        asked.cancel()
        tests += [asyncio.create_task(tested(names[each], keys[each])) for each in (1, 2)]
        await slow.waiting(2)
        fifth = await tested(names[3], keys[3])
        for refused in (again, await another, fifth):
            assert (refused.status_code, refused.json()["code"]) == (429, "rate-limited")
            assert int(refused.headers["retry-after"]) > 0
        slow.go_on.set()
        assert {(await each).status_code for each in tests} == {200}
        for name, key in (("third", keys[0]), (names[3], keys[3])):
            assert (await tested(name, key)).status_code == 200
