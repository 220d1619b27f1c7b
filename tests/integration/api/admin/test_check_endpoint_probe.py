"""POST /v1/producer-groups/{producer_group}/test sends a signed and a forged check only."""

from __future__ import annotations

import asyncio
import base64
from datetime import datetime, timedelta

import httpx2
import pytest
from aiohttp import web
from standardwebhooks import Webhook, WebhookVerificationError

from api.admin.check_endpoint_probe import CheckEndpointProbe
from outbox.access import ANYBODY, Scope
from outbox.checks.ssrf_guard import policy_of
from outbox.clock import SystemClock
from outbox.http_checks.endpoint import HttpCheckEndpoint
from outbox.http_checks.guarded_connector import GuardedResolver
from outbox.postgres.checks.keyring import key_ring
from outbox.postgres.checks.producer_groups import PostgresProducerGroups
from outbox.postgres.sessions.connections import Pool
from tests.integration.api.fixtures_keys import guarded, token
from tests.integration.api.fixtures_rows import stored
from tests.integration.api.fixtures_service import GROUPS, Service, running, settings_for
from tests.integration.checker.fixtures_producer import (
    ABSURD_WAITS,
    Check,
    Producer,
    says,
    status,
    verdict,
)
from tests.integration.http_checks.fixtures_name_server import hanging_names

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


async def test_a_host_with_a_wrong_clock_still_signs_with_the_databases_time(
    bare_service: Service, pool: Pool
) -> None:
    endpoint = Verifying()
    groups = PostgresProducerGroups(pool, key_ring(None, insecure=True))
    policy = policy_of(["127.0.0.0/8"], [], ["1-65535"])
    tests = CheckEndpointProbe(
        groups, lambda: HttpCheckEndpoint(GuardedResolver(policy)), HourAhead()
    )
    async with Producer(endpoint.answer) as producer:
        made = await bare_service.put_group(check_url=producer.url)
        endpoint.secret = made.json()["check_secret"]
        found = await tests.run("billing", ANYBODY.tenant)
    assert (found.signature_accepted, found.forgery_refused) == (True, True)
    [accepted] = endpoint.accepted
    reply_by = datetime.fromisoformat(accepted["reply_by"])
    assert abs(reply_by - SystemClock().now()) < timedelta(minutes=30)


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


async def test_the_tests_of_a_group_without_a_name_server_take_one_thread(
    bare_service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = "http://name.hangs:8099/check"
    await bare_service.put_group(check_url=url, check_timeout_seconds=1)
    with hanging_names(monkeypatch) as asked:
        for _ in range(2):
            found = (await bare_service.client.post(f"{GROUPS}/billing/test")).json()
            assert found["outcome"] == "timeout"
        assert asked.names == ["name.hangs"]


async def test_an_absurd_retry_after_is_an_answer_like_any_other(bare_service: Service) -> None:
    for number, text in enumerate(ABSURD_WAITS.values()):
        async with Producer(status(429, Retry_After=text)) as producer:
            await bare_service.put_group(f"g{number}", check_url=producer.url)
            answer = await bare_service.client.post(f"{GROUPS}/g{number}/test")
        assert (answer.status_code, answer.json()["outcome"]) == (200, "http_error")


async def test_an_endpoint_without_a_listener_is_unreachable(bare_service: Service) -> None:
    async with Producer(says("UNKNOWN")) as producer:
        url = producer.url
    await bare_service.put_group(check_url=url)
    found = (await bare_service.client.post(f"{GROUPS}/billing/test")).json()
    assert (found["reachable"], found["outcome"]) == (False, "unreachable")
    missing = await bare_service.client.post(f"{GROUPS}/nobody/test")
    assert (missing.status_code, missing.json()["code"]) == (404, "unknown-group")


async def test_a_secret_whose_encryption_key_is_lost_names_the_setting_and_what_to_do(
    database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    kept, other = (base64.b64encode(bytes([number]) * 32).decode() for number in (1, 2))
    async with running(settings_for(database_url, encryption_keys=kept)) as service:
        await service.put_group()
    async with running(settings_for(database_url, encryption_keys=other)) as service:
        answer = await service.client.post(f"{GROUPS}/billing/test")
        assert (answer.status_code, answer.json()["code"]) == (500, "internal-error")
        detail = answer.json()["detail"]
        assert "OUTBOX_ENCRYPTION_KEYS" in detail
        assert "`outbox group rotate-secret billing`" in detail
        written = capsys.readouterr().out
        assert "internal_error" in written
        assert answer.json()["request_id"] in written
        rotated = await service.client.post(f"{GROUPS}/billing/rotate-secret", json={})
        assert rotated.status_code == 200
        assert (await service.client.post(f"{GROUPS}/billing/test")).status_code == 200
