"""HttpCheckEndpoint against real servers: good, bad and hostile ones."""

from __future__ import annotations

import asyncio
import gzip
import socket
from typing import Any

import pytest
from aiohttp import web
from aiohttp.abc import ResolveResult
from standardwebhooks import Webhook

from outbox.checks.answer import CheckAnswer, Outcome
from outbox.checks.ssrf_guard import SsrfPolicy
from outbox.clock import SystemClock
from outbox.http_checks.endpoint import HttpCheckEndpoint
from outbox.http_checks.guard import Guard
from tests.integration.checker.fixtures_checks import LOOPBACK_ALLOWED
from tests.integration.checker.fixtures_producer import Check, Producer, says, status, verdict
from tests.integration.checker.fixtures_raw_endpoint import (
    answer_of,
    hostile_endpoint,
    raw_endpoint,
)
from tests.integration.http_checks.fixtures_name_server import answer_names
from tests.integration.http_checks.fixtures_questions import (
    ELSEWHERE_ALLOWED,
    ask,
    group_at,
)
from tests.unit.checker.checks.fixtures_queue_rows import make_row

SECRET = "whsec_a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s="
OLD_SECRET = "whsec_b29vb29vb29vb29vb29vb29vb29vb29vb29vb29vb28="


async def test_receivers_can_verify_the_check_with_either_secret(
    endpoint: HttpCheckEndpoint,
) -> None:
    bodies: list[str] = []

    async def remember(request: web.Request, check: Check) -> web.StreamResponse:
        bodies.append(await request.text())
        return verdict(check, "UNKNOWN")

    async with Producer(remember) as producer:
        await ask(endpoint, producer.url, secrets=(SECRET, OLD_SECRET))
    (headers,) = producer.headers
    for secret in (SECRET, OLD_SECRET):
        assert Webhook(secret).verify(bodies[0], headers)["type"] == "transaction.check"
    assert headers["user-agent"].startswith("outbox-checker/")
    assert {"traceparent", "outbox-attempt"} <= headers.keys()
    assert "cookie" not in headers


@pytest.mark.parametrize(
    ("answer", "outcome", "code"),
    [
        (status(500), Outcome.HTTP_ERROR, 500),
        (status(200, "<html>COMMIT</html>", Content_Type="text/html"), Outcome.BAD_VERDICT, 200),
        (says("COMMIT", message_id="another"), Outcome.BAD_VERDICT, 200),
        (says("COMMIT", padding="x" * 17_000), Outcome.BAD_VERDICT, 200),
        (says("COMMIT", padding="x" * 15_000), Outcome.COMMIT, 200),
    ],
    ids=["500", "html", "wrong id", "17 kB", "15 kB"],
)
async def test_a11_an_answer_is_classified_by_what_it_is(
    endpoint: HttpCheckEndpoint, answer: Any, outcome: Outcome, code: int
) -> None:
    async with Producer(answer) as producer:
        came_back = await ask(endpoint, producer.url)
    assert (came_back.outcome, came_back.http_status) == (outcome, code)


@pytest.mark.parametrize(
    "target",
    ["/%7Ea%2f+b//c", "/a/../b/./%2e", "/a?b=%2F+c&d=[1]&=%41", "/a?b=?/%2F", "/%zz", '/{"<>^`|}'],
)
async def test_a_check_goes_to_the_registered_url_byte_for_byte(
    endpoint: HttpCheckEndpoint, target: str
) -> None:
    seen: list[bytes] = []

    async def remember(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append((await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[0])

    async with raw_endpoint(remember) as url:
        await ask(endpoint, url.removesuffix("/check") + target)
    assert seen == [f"POST {target} HTTP/1.1".encode()]


@pytest.mark.parametrize("code", [302, 307])
async def test_a11_a_redirect_is_never_followed(endpoint: HttpCheckEndpoint, code: int) -> None:
    async with Producer(says("COMMIT")) as target, Producer(status(code, Location=target.url)) as p:
        answer = await ask(endpoint, p.url)
    assert (answer.outcome, answer.http_status, target.asked) == (Outcome.HTTP_ERROR, code, [])


@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        ("silent", Outcome.TIMEOUT),
        ("drip", Outcome.TIMEOUT),
        ("endless_headers", Outcome.UNREACHABLE),
        ("big_body", Outcome.BAD_VERDICT),
        ("reset", Outcome.UNREACHABLE),
        ("not_http", Outcome.UNREACHABLE),
        ("cut_short", Outcome.UNREACHABLE),
    ],
)
async def test_f14_only_the_true_verdict_of_a_hostile_endpoint_counts(
    endpoint: HttpCheckEndpoint, name: str, outcome: Outcome
) -> None:
    async with hostile_endpoint(name) as url, asyncio.timeout(3):
        answer = await ask(endpoint, url)
    assert answer.outcome is outcome
    assert answer.verdict is None


async def test_i14_an_answer_that_nobody_asked_for_counts_for_no_later_check(
    endpoint: HttpCheckEndpoint,
) -> None:
    """The endpoint answers UNKNOWN, and then COMMIT when the first check is over."""
    over, said = asyncio.Event(), asyncio.Event()
    message_id = str(make_row().readable.message_id)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer_of(message_id, "UNKNOWN"))
        await over.wait()
        writer.write(answer_of(message_id, "COMMIT"))
        said.set()

    async with raw_endpoint(talk) as url, asyncio.timeout(60):
        first = await ask(endpoint, url)
        over.set()
        await said.wait()
        second = await ask(endpoint, url)
    assert (first.outcome, second.outcome) == (Outcome.UNKNOWN, Outcome.UNKNOWN)


async def test_a_gzip_bomb_is_not_unpacked(endpoint: HttpCheckEndpoint) -> None:
    bomb = gzip.compress(b" " * 10_000_000)

    async def answer(_: web.Request, __: Check) -> web.StreamResponse:
        headers = {"content-encoding": "gzip", "content-type": "application/json"}
        return web.Response(body=bomb, headers=headers)

    async with Producer(answer) as producer:
        came_back = await ask(endpoint, producer.url)
    assert (came_back.outcome, came_back.error) == (Outcome.BAD_VERDICT, "encoded")


# -- Batches --------------------------------------------------------------------------------------


async def test_a_batch_is_one_call_with_a_verdict_each(endpoint: HttpCheckEndpoint) -> None:
    rows = [make_row(n) for n in (1, 2, 3)]

    async def answer(_: web.Request, data: Check) -> web.StreamResponse:
        first, second, _unanswered = data["checks"]
        verdicts = [
            {"message_id": first["message_id"], "decision": "COMMIT"},
            {"message_id": second["message_id"], "decision": "UNKNOWN"},
        ]
        return web.json_response({"verdicts": verdicts})

    async with Producer(answer) as producer:
        group = group_at(producer.url, batch_check=True, secrets=(SECRET,))
        answers = await endpoint.ask(group, rows, SystemClock().now())
    assert [each.outcome for each in answers] == [
        Outcome.COMMIT,
        Outcome.UNKNOWN,
        Outcome.BAD_VERDICT,
    ]
    assert len(producer.headers) == 1


# -- The SSRF guard at the socket -----------------------------------------------------------------

CLOSED = SsrfPolicy(networks=(), hosts=frozenset(), ports=((1, 65_535),))


async def blocked(url: str, policy: SsrfPolicy = CLOSED) -> CheckAnswer:
    return await ask(HttpCheckEndpoint(policy), url)


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("host", ["127.0.0.1", "[::ffff:127.0.0.1]", "localhost", "localhost."])
async def test_a_loopback_url_is_blocked_before_any_socket(scheme: str, host: str) -> None:
    async with Producer(says("COMMIT")) as producer:
        answer = await blocked(f"{scheme}://{host}:{producer.port}/check")
    assert (answer.outcome, answer.error, answer.spent) == (Outcome.BLOCKED, "not-global", False)
    assert producer.headers == []


async def blocked_at(monkeypatch: pytest.MonkeyPatch, port: int, *addresses: str) -> CheckAnswer:
    """Ask an endpoint whose name has these addresses."""
    answer_names(monkeypatch, {"example.com": addresses})
    return await blocked(f"https://example.com:{port}/check")


@pytest.mark.parametrize(
    "addresses", [("127.0.0.1",), ("10.0.0.7", "127.0.0.1"), ("169.254.169.254",)]
)
async def test_a_public_name_with_an_inner_address_is_blocked(
    monkeypatch: pytest.MonkeyPatch, addresses: tuple[str, ...]
) -> None:
    async with Producer(says("COMMIT")) as producer:
        answer = await blocked_at(monkeypatch, producer.port, *addresses)
    assert (answer.outcome, producer.headers) == (Outcome.BLOCKED, [])


@pytest.mark.parametrize(
    "addresses", [("::1", "127.0.0.1"), ("127.0.0.1", "10.0.0.7"), ("127.0.0.2", "127.0.0.1")]
)
async def test_of_the_addresses_of_a_name_an_allowed_one_is_connected_to(
    endpoint: HttpCheckEndpoint, monkeypatch: pytest.MonkeyPatch, addresses: tuple[str, ...]
) -> None:
    answer_names(monkeypatch, {"localhost": addresses})
    async with Producer(says("COMMIT")) as producer:
        answer = await ask(endpoint, f"http://localhost:{producer.port}/check")
    assert answer.outcome is Outcome.COMMIT


async def test_the_address_is_judged_again_when_the_socket_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The resolver returns an address that it has not judged."""

    async def resolve(*_: object, **__: object) -> list[ResolveResult]:
        return [
            ResolveResult(
                hostname="example.com",
                host="127.0.0.1",
                port=producer.port,
                family=socket.AF_INET,
                proto=6,
                flags=socket.AI_NUMERICHOST,
            )
        ]

    monkeypatch.setattr(Guard, "resolve", resolve)
    async with Producer(says("COMMIT")) as producer:
        answer = await blocked(f"https://example.com:{producer.port}/check")
    assert (answer.outcome, answer.error, producer.headers) == (Outcome.BLOCKED, "not-global", [])


async def test_a_proxy_of_the_environment_is_ignored(
    endpoint: HttpCheckEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    async with Producer(says("COMMIT")) as producer:
        assert (await ask(endpoint, producer.url)).outcome is Outcome.COMMIT


async def test_through_an_egress_proxy_the_resolved_name_is_judged_first() -> None:
    seen: list[str] = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        seen.append("asked")
        writer.write(b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n")
        await writer.drain()

    async with raw_endpoint(proxy) as url:
        proxy_url = url.removesuffix("/check")
        for policy, outcome in ((CLOSED, Outcome.BLOCKED), (LOOPBACK_ALLOWED, Outcome.HTTP_ERROR)):
            endpoint = HttpCheckEndpoint(policy, proxy_url=proxy_url)
            answer = await ask(endpoint, "http://localhost:8099/check")
            assert answer.outcome is outcome
    assert seen == ["asked"]


async def test_through_an_egress_proxy_a_name_with_an_inner_address_is_never_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The proxy would resolve the name itself, and connect to what the guard forbids."""
    answer_names(monkeypatch, {"example.com": ("192.0.2.7", "10.0.0.7")})
    async with Producer(says("COMMIT")) as proxy:
        proxy_url = f"http://127.0.0.1:{proxy.port}"
        endpoint = HttpCheckEndpoint(ELSEWHERE_ALLOWED, proxy_url=proxy_url)
        answer = await ask(endpoint, "http://example.com/check")
    assert (answer.outcome, answer.error, proxy.headers) == (Outcome.BLOCKED, "not-global", [])
