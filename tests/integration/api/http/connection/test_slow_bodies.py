"""What one tenant sends too slowly, or does not read, costs no other tenant anything."""

from __future__ import annotations

import asyncio
import json
import select
import socket
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from itertools import islice

import pytest
from structlog.testing import capture_logs

from api.http.connection.open_connections import ConnectionLimits
from outbox.access import Scope
from outbox.postgres.sessions.connections import Pool
from tests.integration.api.fixtures_keys import WITH_KEYS, Header, token
from tests.integration.api.fixtures_service import GROUPS, HALVES, prepare_body, settings_for
from tests.integration.api.fixtures_sockets import (
    LIVENESS_SECONDS,
    Listener,
    Wire,
    listening,
    request,
)

pytestmark = pytest.mark.postgres

JSON = "content-type: application/json"
HOSTILE, QUIET = "hostile", "quiet"
SCOPES = (Scope.MESSAGES_WRITE, Scope.MESSAGES_END, Scope.MESSAGES_READ)
KIB = 1024
LARGE = 400_000


def field(header: Header) -> str:
    """Return a key's header as a line."""
    return f"authorization: {header['Authorization']}"


@asynccontextmanager
async def two_tenants(
    database_url: str, pool: Pool, limits: ConnectionLimits | None = None, **settings: int
) -> AsyncIterator[tuple[Listener, str, Header]]:
    """Serve two tenants; yield the hostile one's key as a line and the quiet one's key."""
    admin = await token(pool, Scope.ADMIN)
    hostile = await token(pool, *SCOPES, groups=(HOSTILE,))
    quiet = await token(pool, *SCOPES, groups=(QUIET,))
    configured = settings_for(database_url, **WITH_KEYS, **settings)
    async with listening(configured, limits) as listener:
        for group in (HOSTILE, QUIET):
            body = {"check_url": "http://127.0.0.1:8999/check"}
            answer = await listener.client.put(f"{GROUPS}/{group}", json=body, headers=admin)
            assert answer.status_code == 201, answer.text
        yield listener, field(hostile), quiet


async def prepare(listener: Listener, key: Header) -> str:
    """Prepare a message of the quiet tenant; return its id."""
    body = prepare_body(producer_group=QUIET)
    answer = await listener.client.post(HALVES, json=body, headers=key)
    assert answer.status_code == 201, answer.text
    message_id: str = answer.json()["message_id"]
    return message_id


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", HALVES),
        ("POST", f"{HALVES}/batch"),
        ("POST", f"{HALVES}/some-id/end"),
        ("POST", f"{HALVES}/end-batch"),
        ("PUT", f"{GROUPS}/{HOSTILE}"),
    ],
)
async def test_bodies_that_come_slowly_refuse_no_request(
    database_url: str, pool: Pool, method: str, path: str
) -> None:
    async with two_tenants(database_url, pool, http_max_inflight=2) as (listener, hostile, quiet):
        slow = request(method, path, hostile, JSON, "content-length: 1000") + b'{"a'
        for _ in range(20):
            await listener.wire(slow)
        for _ in range(5):
            message_id = await prepare(listener, quiet)
        answer = await listener.client.get(f"{HALVES}/{message_id}", headers=quiet)
        assert answer.status_code == 200


async def test_incomplete_bodies_hold_a_bounded_amount_of_memory_of_who_sends_most(
    database_url: str, pool: Pool
) -> None:
    size = 256 * KIB
    bounded = two_tenants(database_url, pool, http_max_batch_bytes=size)
    async with bounded as (listener, hostile, quiet):
        items = [prepare_body(producer_group=QUIET, value="x" * 100_000)]
        whole = json.dumps({"items": items}).encode()
        head = request(
            "POST", f"{HALVES}/batch", field(quiet), JSON, f"content-length: {len(whole)}"
        )
        oldest = await listener.wire(head + whole[:-1])
        await prepare(listener, quiet)
        sent = []
        for path in (f"{HALVES}/batch", f"{HALVES}/end-batch"):
            large = request("POST", path, hostile, JSON, f"content-length: {size}")
            sent += [await listener.wire(large + b" " * (size - 1)) for _ in range(32)]
        ended = [await wire.answer() for wire in sent[:32]]
        assert {answer.status for answer in ended if answer} == {503}
        await prepare(listener, quiet)
        await oldest.send(whole[-1:])
        answer = await oldest.answer()
        assert answer is not None
        assert answer.status == 207


async def test_an_end_that_loses_its_place_is_late_and_not_refused_for_load(
    database_url: str, pool: Pool
) -> None:
    size = 64 * KIB
    bounded = two_tenants(database_url, pool, http_max_batch_bytes=size)
    async with bounded as (listener, hostile, _):
        large = request("POST", f"{HALVES}/end-batch", hostile, JSON, f"content-length: {size}")
        sent = [await listener.wire(large + b" " * (size - 1)) for _ in range(40)]
        answer = await sent[0].answer()
        assert answer is not None
        assert answer.status == 408


async def test_complete_bodies_count_until_they_are_answered(database_url: str, pool: Pool) -> None:
    size = 256 * KIB
    bounded = two_tenants(database_url, pool, http_max_batch_bytes=size)
    async with bounded as (listener, hostile, quiet):
        items = [prepare_body(producer_group=HOSTILE, value="x" * 100_000)] * 2
        body = json.dumps({"items": items}).encode()
        sent = request("POST", f"{HALVES}/batch", hostile, body=body)
        end = {"decision": "ROLLBACK"}
        message_id = await prepare(listener, quiet)
        async with pool.connection() as holder:
            async with holder.transaction():
                await holder.execute("LOCK TABLE outbox.half_message IN ACCESS EXCLUSIVE MODE")
                wires = [await listener.wire(sent) for _ in range(60)]
                answers = [asyncio.create_task(wire.answer()) for wire in wires]
                refused = [await first for first in islice(asyncio.as_completed(answers), 10)]
                assert {answer.status for answer in refused if answer} == {503}
                late = asyncio.create_task(
                    listener.client.post(
                        f"{HALVES}/{message_id}/end", json={**end, "reason": ""}, headers=quiet
                    )
                )
            answered = [answer.status for answer in await asyncio.gather(*answers) if answer]
            assert set(answered) == {207, 503}
            assert answered.count(207) >= 20
            assert (await late).status_code == 200
        again = await (await listener.wire(sent)).answer()
        assert again is not None
        assert again.status == 207


def deaf_reader(stack: ExitStack, listener: Listener, key: str, path: str) -> socket.socket:
    """Ask for an answer three times over a connection, and read nothing."""
    deaf = stack.enter_context(socket.socket())
    deaf.connect(("127.0.0.1", listener.port))
    deaf.sendall(request("GET", path, key) * 3)
    return deaf


async def large_message(listener: Listener, admin: Header, group: str) -> str:
    """Prepare a message of a group; return the path of its large payload."""
    body = prepare_body(producer_group=group, value="x" * LARGE)
    answer = await listener.client.post(HALVES, json=body, headers=admin)
    assert answer.status_code == 201, answer.text
    return f"{HALVES}/{answer.json()['message_id']}?include=payload"


async def prepared_in_a_row(listener: Listener, key: Header, wanted: int) -> int:
    """Prepare until so many in a row were accepted, or time is over; return how many were."""
    accepted, until = 0, time.monotonic() + LIVENESS_SECONDS / 3
    while accepted < wanted and time.monotonic() < until:
        body = prepare_body(producer_group=QUIET)
        answer = await listener.client.post(HALVES, json=body, headers=key)
        accepted = accepted + 1 if answer.status_code == 201 else 0
        await asyncio.sleep(0.02)
    return accepted


async def test_answers_that_nobody_reads_take_no_room(database_url: str, pool: Pool) -> None:
    admin = await token(pool, Scope.ADMIN)
    patient = ConnectionLimits(unread_seconds=10 * LIVENESS_SECONDS)
    served = two_tenants(database_url, pool, patient, http_max_inflight=2)
    with capture_logs() as lines:
        async with served as (listener, _, quiet):
            path = await large_message(listener, admin, HOSTILE)
            with ExitStack() as stack:
                for _ in range(4):
                    deaf_reader(stack, listener, field(admin), path)
                assert await prepared_in_a_row(listener, quiet, 50) == 50
    failed = [each for each in lines if each["log_level"] == "error"]
    assert failed == [], "a client that leaves is no error"


@pytest.mark.deep
async def test_unread_answers_hold_a_bounded_amount_of_memory_of_who_leaves_most(
    database_url: str, pool: Pool
) -> None:
    admin = await token(pool, Scope.ADMIN)
    reader = await token(pool, Scope.MESSAGES_READ, Scope.MESSAGES_PAYLOAD, groups=(QUIET,))
    limits = ConnectionLimits(unread_seconds=10 * LIVENESS_SECONDS, unread_bytes=KIB * KIB)
    async with two_tenants(database_url, pool, limits) as (listener, _, _):
        path = await large_message(listener, admin, HOSTILE)
        of_quiet = await large_message(listener, admin, QUIET)
        with ExitStack() as stack:
            late = deaf_reader(stack, listener, field(reader), of_quiet)
            deaf = [deaf_reader(stack, listener, field(admin), path) for _ in range(12)]
            assert await asyncio.to_thread(ended, deaf, 4) >= 4
            assert await asyncio.to_thread(read_on, late) > 3 * LARGE


def ended(readers: Sequence[socket.socket], wanted: int) -> int:
    """Wait until the server has ended so many connections; return how many it ended in time."""
    poll, found = select.poll(), 0
    for each in readers:
        poll.register(each, select.POLLHUP)
    until = time.monotonic() + LIVENESS_SECONDS / 3
    while found < wanted and time.monotonic() < until:
        for descriptor, _ in poll.poll(1000):
            poll.unregister(descriptor)
            found += 1
    return found


def read_on(reader: socket.socket) -> int:
    """Read three large answers; return how many bytes came."""
    reader.settimeout(LIVENESS_SECONDS)
    size = 0
    while size <= 3 * LARGE and (part := reader.recv(65_536)):
        size += len(part)
    return size


SLOW = {
    "body": request("POST", HALVES, JSON, "content-length: 1000") + b"{",
    "head": b"POST /v1/half-messages HTTP/1.1\r\nhost: a\r\n",
    "nothing": b"",
}


@pytest.mark.parametrize("kind", SLOW)
async def test_a_tenant_with_all_connections_loses_the_oldest_to_another_tenant(
    database_url: str, pool: Pool, kind: str
) -> None:
    limits = ConnectionLimits(connections=10)
    async with two_tenants(database_url, pool, limits) as (listener, hostile, quiet):
        first = request("GET", f"{HALVES}?limit=1", hostile)
        slow = SLOW[kind].replace(b"\r\n", f"\r\n{hostile}\r\n".encode(), 1)
        await prepare(listener, quiet)
        wires = [await known(listener, first, slow) for _ in range(12)]
        for _ in range(3):
            fresh = await listener.wire(request("GET", f"{HALVES}?limit=1", field(quiet)))
            answer = await fresh.answer()
            assert answer is not None
            assert answer.status == 200
        await prepare(listener, quiet)
        assert await wires[0].statuses() == (
            [] if kind == "nothing" else [503 if kind == "head" else 408]
        )


async def known(listener: Listener, first: bytes, slow: bytes) -> Wire:
    """Open a connection that has authenticated and then sends slowly."""
    wire = await listener.wire(first)
    answer = await wire.answer()
    assert answer is not None
    assert answer.status == 200
    if slow:
        await wire.send(slow)
    return wire


async def test_ends_that_wait_for_kafka_leave_connections_for_others(
    database_url: str, pool: Pool
) -> None:
    limits = ConnectionLimits(connections=16)
    bounded = two_tenants(database_url, pool, limits, http_max_connections=16)
    async with bounded as (listener, hostile, quiet):
        for _ in range(20):
            body = json.dumps(prepare_body(producer_group=HOSTILE)).encode()
            wire = await listener.wire(request("POST", HALVES, hostile, body=body))
            prepared = await wire.answer()
            assert prepared is not None
            message_id = json.loads(prepared.body)["message_id"]
            end = request(
                "POST",
                f"{HALVES}/{message_id}/end",
                hostile,
                "prefer: wait=6",
                body=b'{"decision":"COMMIT"}',
            )
            await wire.send(end)
        for _ in range(3):
            fresh = await listener.wire(request("GET", f"{HALVES}?limit=1", field(quiet)))
            answer = await fresh.answer()
            assert answer is not None
            assert answer.status == 200
