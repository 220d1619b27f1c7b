"""A notice reaches its endpoint signed, is repeated under one id, and passes the guard."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from standardwebhooks import Webhook

from outbox.checks.ssrf_guard import SsrfPolicy, policy_of
from outbox.clock import SystemClock
from outbox.http_checks.guarded_connector import GuardedResolver
from outbox.http_checks.webhook import Notice, NoticeResult, WebhookTarget, post_notice
from tests.integration.checker.fixtures_checks import LOOPBACK_ALLOWED
from tests.integration.http_checks.fixtures_name_server import answer_names
from tests.integration.http_checks.fixtures_questions import ELSEWHERE_ALLOWED

SECRET = "whsec_a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s="
NOTICE = Notice(notice_id="run_7", kind="reconciliation.changed", data={"verdict": "findings"})


@dataclass
class Hook:
    """An endpoint that answers with these statuses one after the other, the last for ever."""

    statuses: list[int]
    url: str = ""
    came: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    async def take(self, request: web.Request) -> web.Response:
        self.came.append((await request.text(), dict(request.headers)))
        code = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        return web.Response(status=code, headers={"Location": self.url} if code == 302 else {})


@asynccontextmanager
async def hook(*statuses: int) -> AsyncIterator[Hook]:
    taken = Hook(list(statuses))
    app = web.Application()
    app.router.add_post("/hook", taken.take)
    server = TestServer(app, port=0)
    await server.start_server()
    taken.url = f"http://127.0.0.1:{server.port}/hook"
    yield taken
    await server.close()


async def result_of(url: str, policy: SsrfPolicy = LOOPBACK_ALLOWED) -> NoticeResult:
    guard = GuardedResolver(policy)
    target = WebhookTarget(url=url, secret=SECRET, resolver=guard, waits=(0.0, 0.0))
    return await post_notice(target, NOTICE, SystemClock())


async def test_a_notice_can_be_verified_and_is_sent_once_when_accepted() -> None:
    async with hook(204) as endpoint:
        assert await result_of(endpoint.url) == NoticeResult(
            delivered=True, outcome="204", attempts=1
        )
    [(body, headers)] = endpoint.came
    Webhook(SECRET).verify(body, headers)
    document = json.loads(body)
    assert (document["type"], document["data"]) == (NOTICE.kind, NOTICE.data)


async def test_it_is_repeated_under_one_id_until_it_is_accepted() -> None:
    async with hook(500, 302, 200) as endpoint:
        assert await result_of(endpoint.url) == NoticeResult(
            delivered=True, outcome="200", attempts=3
        )
    assert {headers["webhook-id"] for _, headers in endpoint.came} == {"run_7"}


@pytest.mark.parametrize(("status", "attempts"), [(503, 3), (410, 1), (302, 3)])
async def test_a_failing_endpoint_is_given_up(status: int, attempts: int) -> None:
    async with hook(status) as endpoint:
        assert await result_of(endpoint.url) == NoticeResult(
            delivered=False, outcome=str(status), attempts=attempts
        )
    assert len(endpoint.came) == attempts


async def test_the_guard_judges_the_url_first() -> None:
    async with hook(204) as endpoint:
        strict = policy_of([], [], ["1-65535"])
        assert await result_of(endpoint.url, strict) == NoticeResult(
            delivered=False, outcome="blocked", attempts=1
        )
    assert endpoint.came == []


async def test_through_an_egress_proxy_no_notice_goes_to_a_name_with_an_inner_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer_names(monkeypatch, {"example.com": ("10.0.0.7",)})
    async with hook(204) as proxy:
        target = WebhookTarget(
            url="http://example.com/hook",
            secret=SECRET,
            resolver=GuardedResolver(ELSEWHERE_ALLOWED),
            proxy_url=proxy.url.removesuffix("/hook"),
            waits=(),
        )
        found = await post_notice(target, NOTICE, SystemClock())
    assert (found.outcome, proxy.came) == ("blocked", [])


async def test_an_unreachable_endpoint_is_one_word_and_no_secret_is_shown() -> None:
    async with hook(204) as endpoint:
        url = endpoint.url
    assert (await result_of(url)).outcome == "unreachable"
    guard = GuardedResolver(LOOPBACK_ALLOWED)
    target = WebhookTarget(url=f"{url}?token=t-o-k", secret=SECRET, resolver=guard)
    assert SECRET not in repr(target)
    assert "t-o-k" not in repr(target)
