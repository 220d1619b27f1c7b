"""Every connection ends: deadlines, the limit of connections, and clients that do not read."""

from __future__ import annotations

import asyncio
import gc
import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from api.http.connection.cycle import Cycle
from api.http.connection.open_connections import ConnectionLimits
from api.http.connection.protocol import BoundedHttpProtocol
from tests.integration.api.fixtures_service import (
    GROUP,
    GROUPS,
    HALVES,
    prepare_body,
    settings_for,
)
from tests.integration.api.fixtures_sockets import (
    LIVENESS_SECONDS,
    Listener,
    listening,
    request,
)

pytestmark = pytest.mark.postgres

SHORT = ConnectionLimits(
    head_seconds=1, body_seconds=1, idle_seconds=2, unread_seconds=0.5, drain_seconds=1
)
LIVE = request("GET", "/livez")
PREPARE = request("POST", HALVES, body=json.dumps(prepare_body()).encode())


async def drip(listener: Listener, first: bytes, drop: bytes, seconds: float = 0.2) -> list[int]:
    """Send the first bytes, then a drop again and again; return the answers until the end."""
    wire = await listener.wire(first)

    async def drops() -> None:
        while True:
            await asyncio.sleep(seconds)
            await wire.send(drop)

    task = asyncio.create_task(drops())
    try:
        return await wire.statuses()
    finally:
        task.cancel()


async def test_every_way_to_send_too_little_ends(
    database_url: str, subtests: pytest.Subtests
) -> None:
    chunked = request(
        "POST", HALVES, "content-type: application/json", "transfer-encoding: chunked"
    )
    dripping = {
        "nothing": (b"", b"", [408]),
        "blank lines": (b"", b"\r\n", [408]),
        "headers": (b"GET /livez HTTP/1.1\r\n", b"a: b\r\n", [408]),
        "one header": (b"GET /livez HTTP/1.1\r\na: ", b"b", [408]),
        "body": (request("POST", HALVES, body=b"{")[:-1] + b"", b"", [408]),
        "chunks": (chunked, b"1\r\n \r\n", [408]),
        "chunk extension": (chunked + b"1;", b"a", [408]),
        "trailers": (chunked + b"1\r\n \r\n0\r\n", b"a: b\r\n", [408]),
        "nothing after an answer": (LIVE, b"", [200]),
        "blank lines after an answer": (LIVE, b"\r\n", [200]),
        "headers after an answer": (LIVE + b"GET /livez HTTP/1.1\r\n", b"a: b\r\n", [200, 408]),
        "body of a request that was answered": (
            request("POST", "/livez", "content-length: 100000"),
            b" ",
            [405],
        ),
    }
    async with listening(settings_for(database_url), SHORT) as listener:
        drips = [drip(listener, first, drop) for first, drop, _ in dripping.values()]
        for name, found in zip(dripping, await asyncio.gather(*drips), strict=True):
            with subtests.test(name):
                assert found == dripping[name][2]


async def test_a_client_that_does_not_read_is_cut_off(database_url: str) -> None:
    async with listening(settings_for(database_url), SHORT) as listener:
        with socket.socket() as deaf:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            deaf.connect(("127.0.0.1", listener.port))
            deaf.setblocking(False)
            asked = request("GET", "/openapi.json") * 8
            loop = asyncio.get_running_loop()

            async def ask_on() -> None:
                while True:
                    await loop.sock_sendall(deaf, asked)
                    await asyncio.sleep(0.1)

            with pytest.raises(ConnectionError):
                await asyncio.wait_for(ask_on(), 60)


def unread_bytes(client: socket.socket, port: int) -> int | None:
    """Return how many bytes for a client Linux keeps; None if it keeps no such connection."""
    ends = [f":{port:04X}", f":{client.getsockname()[1]:04X}"]
    for line in Path("/proc/net/tcp").read_text("utf-8").splitlines():
        columns = line.split()
        if [column[-5:] for column in columns[1:3]] == ends:
            return int(columns[4].partition(":")[0], 16)
    return None


async def test_what_a_client_leaves_unread_is_little_and_is_dropped_in_time(
    database_url: str,
) -> None:
    limits = replace(SHORT, idle_seconds=10 * LIVENESS_SECONDS)
    async with listening(settings_for(database_url), limits) as listener:
        with socket.socket() as deaf:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            await asyncio.to_thread(deaf.connect, ("127.0.0.1", listener.port))
            kept = 0
            deaf.sendall(request("GET", "/openapi.json") * 15)
            async with asyncio.timeout(LIVENESS_SECONDS):
                while (unread := unread_bytes(deaf, listener.port)) is not None:
                    kept = max(kept, unread)
                    assert kept < 262_144
                    await asyncio.sleep(0.02)
            assert kept > 0


@pytest.fixture
def no_collector() -> Iterator[None]:
    """Switch the garbage collector off, which looks at what has grown old very rarely."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def connections_in_memory() -> int:
    """Return how many connections and requests exist, ended ones included."""
    return sum(isinstance(each, (BoundedHttpProtocol, Cycle)) for each in gc.get_objects())


@pytest.mark.usefixtures("no_collector")
async def test_a_connection_that_has_ended_takes_no_memory(database_url: str) -> None:
    body = request("POST", HALVES, body=b"{}")
    ends = {
        "late headers": b"GET /livez HTTP/1.1\r\na: ",
        "late body": body[:-1],
        "idle": LIVE * 3,
        "a body that is left": request("POST", "/livez", "content-length: 5"),
        "a fault": LIVE + b"?",
        "a request of the framework": request("GET", GROUPS),
        "a last request": request("GET", GROUPS, "connection: close"),
    }
    async with listening(settings_for(database_url), SHORT) as listener:
        for name, data in ends.items():
            before = connections_in_memory()
            wires = [await listener.wire(data) for _ in range(5)]
            await asyncio.gather(*(wire.statuses() for wire in wires))
            assert await no_more_than(before), name
        before = connections_in_memory()
        for data in (body[:-1], body, request("GET", GROUPS) * 3):
            (await listener.wire(data)).writer.transport.abort()
        assert await no_more_than(before), "the client leaves"


async def no_more_than(number: int) -> bool:
    """Return whether so few connections are in memory, now or in a while."""
    with suppress(TimeoutError):
        async with asyncio.timeout(LIVENESS_SECONDS / 3):
            while True:
                if connections_in_memory() <= number:
                    return True
                await asyncio.sleep(0.05)
    return False


async def test_the_oldest_connection_without_a_key_makes_room(database_url: str) -> None:
    limits = ConnectionLimits(connections=20)
    async with listening(settings_for(database_url), limits) as listener:
        await listener.put_group(GROUP)  # its client's connection has authenticated
        strangers = [await listener.wire() for _ in range(30)]
        assert [await wire.statuses() for wire in strangers[:10]] == [[503]] * 10
        prepared = await listener.client.post(HALVES, json=prepare_body())
        assert prepared.status_code == 201
        known = await listener.wire(PREPARE)
        first = await known.answer()
        assert first is not None
        assert first.status == 201
        await asyncio.gather(*(listener.wire() for _ in range(30)))
        await known.send(PREPARE)
        second = await known.answer()
        assert second is not None
        assert second.status == 201


async def test_a_client_that_hoards_connections_loses_idle_ones(database_url: str) -> None:
    limits = ConnectionLimits(connections=10)
    async with listening(settings_for(database_url), limits) as listener:
        await listener.put_group(GROUP)
        hoard = [await listener.wire(PREPARE) for _ in range(9)]
        assert all([await wire.answer() for wire in hoard])
        for _ in range(5):
            answer = await (await listener.wire(PREPARE)).answer()
            assert answer is not None
            assert answer.status == 201
        assert await hoard[0].ends()


async def test_connections_that_were_turned_away_do_not_pile_up(database_url: str) -> None:
    limits = ConnectionLimits(connections=5, leaving=3, drain_seconds=60)
    async with listening(settings_for(database_url), limits) as listener:
        wires = [await listener.wire() for _ in range(30)]
        for wire in wires[:20]:
            await wire.statuses()
            await wire.send(b" ")
        assert (await listener.client.get("/livez")).status_code == 200


async def test_a_refusal_for_size_is_read_by_a_client_that_sends_first(database_url: str) -> None:
    async with listening(settings_for(database_url)) as listener:
        for path, size in ((f"{HALVES}/batch", 9 * 2**20), (HALVES, 2 * 2**20)):
            for length in (True, False):
                answer = await asyncio.to_thread(send_all, listener.port, path, size, length)
                assert answer.startswith(b"HTTP/1.1 413 "), answer
                assert b"connection: close" in answer


def send_all(port: int, path: str, size: int, length: bool) -> bytes:
    """Send a large body to its end, then read the whole answer."""
    head = request("POST", path, "content-type: application/json")[:-2]
    with socket.create_connection(("127.0.0.1", port)) as client:
        if length:
            client.sendall(head + b"content-length: %d\r\n\r\n" % size + b" " * size)
        else:
            client.sendall(head + b"transfer-encoding: chunked\r\n\r\n%x\r\n" % size + b" " * size)
        answer = b""
        while part := client.recv(65_536):
            answer += part
    return answer


async def test_a_body_beyond_all_limits_is_not_read_to_its_end(database_url: str) -> None:
    async with listening(settings_for(database_url)) as listener:
        wire = await listener.wire(request("POST", HALVES, f"content-length: {2**40}"))

        async def send_on() -> None:
            while True:
                wire.writer.write(b" " * 2**20)
                await wire.writer.drain()

        with pytest.raises(ConnectionError):
            await asyncio.wait_for(send_on(), 60)


async def test_the_answer_before_a_refused_head_is_complete(database_url: str) -> None:
    async with listening(settings_for(database_url)) as listener:
        wire = await listener.wire(request("GET", f"{GROUPS}?limit=1") + b"GET /" + b"a" * 400_000)
        answer = await wire.answer()
        assert answer is not None
        assert answer.status == 200
        assert len(json.loads(answer.body)["data"]) <= 1
        assert await wire.ends()


async def test_a_stop_does_not_wait_for_silent_clients(database_url: str) -> None:
    async with listening(settings_for(database_url)) as listener:
        for first in (b"", LIVE, LIVE + b"GET /livez HTTP/1.1\r\n"):
            await listener.wire(first)
        assert (await listener.client.get("/livez")).status_code == 200
    # The block ends: the fixture asserts that the server's thread has ended.
