"""The listener of metrics: no stranger keeps it, or the files of the process, from others."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest

from checker.maintenance.metrics_server import metrics_server
from outbox.errors import ConfigurationError
from outbox.telemetry import page_listener as listener
from outbox.telemetry.metrics import Metrics
from outbox.telemetry.page_listener import Page, page_listener
from tests.fixtures_plain_http import NO_TLS

LIVENESS_SECONDS = 20
SILENT = {"nothing": b"", "half a head": b"GET /metrics HTTP/1.1\r\na: "}


def free_address() -> str:
    """Return an address on loopback that nobody listens on."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{bound.getsockname()[1]}"


@asynccontextmanager
async def serving() -> AsyncIterator[str]:
    """Serve the checker's metrics for the block; yield the address."""
    address = free_address()
    async with metrics_server(address, Metrics()):
        yield address


@asynccontextmanager
async def strangers(
    address: str, data: bytes, number: int
) -> AsyncIterator[list[asyncio.StreamReader]]:
    """Open connections one after the other, and send what strangers do."""
    opened = []
    for _ in range(number):
        opened.append(await asyncio.open_connection(*address.split(":")))
        opened[-1][1].write(data)
    try:
        yield [reader for reader, _ in opened]
    finally:
        for _, writer in opened:
            writer.transport.abort()


async def ended(readers: list[asyncio.StreamReader], wanted: int) -> int:
    """Return how many connections have ended once so many have, or the time is over."""
    ends = [asyncio.create_task(each.read()) for each in readers]
    until = asyncio.get_running_loop().time() + LIVENESS_SECONDS
    while (done := sum(each.done() for each in ends)) < wanted:
        if asyncio.get_running_loop().time() > until:
            break
        await asyncio.wait(ends, timeout=0.05)
    for each in ends:
        each.cancel()
    return done


async def test_the_pages_are_read_and_every_other_request_has_an_answer() -> None:
    async with (
        serving() as address,
        httpx2.AsyncClient(base_url=f"http://{address}", verify=NO_TLS) as client,
    ):
        for _ in range(2):
            page = await client.get("/metrics")
            assert page.status_code == 200
            assert page.headers["content-type"].startswith("text/plain; version=")
            assert "outbox_build_info" in page.text
        assert (await client.get("/livez?probe=1")).json() == {"status": "ok"}
        head = await client.head("/livez")
        assert (head.status_code, head.headers["content-length"]) == (200, "16")
        assert (await client.get("/nothing")).status_code == 404
        refused = await client.post("/metrics")
        assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize(
    "asked",
    [
        "GET /livez HTTP/1.0",
        "GET /livez HTTP/1.0\r\nConnection: keep-alive",
        "GET /livez HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5",
        "GET /livez?name[]=up&x=%20#part HTTP/1.1\r\nHost: x",
        "GET http://checker:9464/livez HTTP/1.1\r\nHost: checker:9464",
        "GET http://checker:9464/livez?x=1 HTTP/1.0",
        "HEAD http://checker:9464/livez HTTP/1.1\r\nHost: checker:9464",
        "HEAD /livez HTTP/1.0",
    ],
)
async def test_whatever_a_monitor_sends_the_page_is_the_answer(asked: str) -> None:
    async with serving() as address, strangers(address, f"{asked}\r\n\r\n".encode(), 1) as [one]:
        head, _, body = (await one.read()).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"\r\ncontent-length: 16\r\nconnection: close" in head
    assert body == (b"" if asked.startswith("HEAD") else b'{"status": "ok"}')


@pytest.mark.parametrize("target", [b"*", b"http://", b"\xff", b"checker:9464", b"?", b""])
async def test_what_is_no_address_is_not_found(target: bytes) -> None:
    async with (
        serving() as address,
        strangers(address, b"GET %s HTTP/1.1\r\n\r\n" % target, 1) as [one],
    ):
        assert (await one.read()).startswith(b"HTTP/1.1 404 Not Found\r\n")


@pytest.mark.parametrize("kind", SILENT)
async def test_the_oldest_of_too_many_connections_ends_and_newcomers_are_answered(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "CONNECTION_SECONDS", 3600)
    async with (
        serving() as address,
        strangers(address, SILENT[kind], 100) as silent,
        httpx2.AsyncClient(base_url=f"http://{address}", verify=NO_TLS) as client,
    ):
        assert (await client.get("/livez")).status_code == 200
        assert await ended(silent[:36], 36) == 36


@pytest.mark.parametrize("kind", SILENT)
async def test_every_connection_ends(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "CONNECTION_SECONDS", 0.5)
    async with serving() as address, strangers(address, SILENT[kind], 20) as silent:
        assert await ended(silent, 20) == 20


async def test_a_head_without_end_is_not_kept() -> None:
    endless = b"GET /metrics HTTP/1.1\r\n" + b"a:b\r\n" * 100_000
    async with serving() as address, strangers(address, endless, 1) as endless_ones:
        assert await ended(endless_ones, 1) == 1


async def test_one_making_of_a_page_answers_everybody_who_asks_meanwhile() -> None:
    made, go_on, address = list[None](), asyncio.Event(), free_address()

    async def page() -> bytes:
        made.append(None)
        await go_on.wait()
        return b"page"

    async with (
        page_listener(address, {"/metrics": Page("text/plain", page)}),
        httpx2.AsyncClient(base_url=f"http://{address}", verify=NO_TLS) as client,
    ):
        asking = [asyncio.create_task(client.get("/metrics")) for _ in range(20)]
        async with asyncio.timeout(LIVENESS_SECONDS):
            while len(listener_tasks()) < 20:
                await asyncio.wait(asking, timeout=0.01)
        go_on.set()
        assert {(await each).text for each in asking} == {"page"}
    assert len(made) == 1


def listener_tasks() -> list[asyncio.Task[object]]:
    """Return the running answers of a listener of this event loop."""
    return [each for each in asyncio.all_tasks() if "_Listener.serve" in repr(each.get_coro())]


async def test_a_page_that_cannot_be_made_is_an_error_and_the_next_one_is_made() -> None:
    answers, address = [b"page"], free_address()

    async def page() -> bytes:
        return answers.pop()  # the empty list raises

    async with (
        page_listener(address, {"/metrics": Page("text/plain", page)}),
        httpx2.AsyncClient(base_url=f"http://{address}", verify=NO_TLS) as client,
    ):
        assert (await client.get("/metrics")).text == "page"
        assert (await client.get("/metrics")).status_code == 500
        answers.append(b"again")
        assert (await client.get("/metrics")).text == "again"


@pytest.mark.parametrize("bind", ["127.0.0.1:99999", "127.0.0.1:x", "203.0.113.1:80"])
async def test_an_address_that_cannot_be_bound_is_named_with_its_setting(bind: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^OUTBOX_CHECKER_METRICS_BIND: {bind}"):
        async with metrics_server(bind, Metrics()):
            pass
