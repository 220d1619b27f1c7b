"""Answers that are written at once, those of the hot routes and refusals, on real connections."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from email.utils import parsedate_to_datetime

import pytest

from outbox.postgres.sessions.connections import Pool
from tests.integration.api.fixtures_rows import stored
from tests.integration.api.fixtures_service import GROUP, HALVES, prepare_body, settings_for
from tests.integration.api.fixtures_sockets import LIVENESS_SECONDS, Listener, listening, request

pytestmark = pytest.mark.postgres

BODY = json.dumps(prepare_body()).encode()
PREPARE = request("POST", HALVES, body=BODY)


@pytest.fixture
async def listener(database_url: str) -> AsyncIterator[Listener]:
    """Yield the listening service with one group."""
    async with listening(settings_for(database_url)) as listener:
        await listener.put_group(GROUP)
        yield listener


async def test_a_hot_answer_has_the_headers_that_every_answer_has(listener: Listener) -> None:
    hot = await (await listener.wire(PREPARE)).answer()
    cold = await (await listener.wire(request("GET", HALVES))).answer()
    assert hot is not None
    assert cold is not None
    assert (hot.status, cold.status) == (201, 200)
    for answer in (hot, cold):
        assert answer.head.startswith("HTTP/1.1 ")
        assert "date" in answer.headers
        assert parsedate_to_datetime(answer.headers["date"]).tzinfo is not None
        assert answer.headers["x-request-id"]
        assert "connection" not in answer.headers
    assert json.loads(hot.body)["producer_group"] == GROUP


@pytest.mark.parametrize("of_client", [b"HTTP/1.0\r\n", b"HTTP/1.1\r\nconnection: close\r\n"])
async def test_the_connection_ends_where_the_client_asks_for_it(
    listener: Listener, of_client: bytes
) -> None:
    wire = await listener.wire(PREPARE.replace(b"HTTP/1.1\r\n", of_client))
    answer = await wire.answer()
    assert answer is not None
    assert (answer.status, answer.headers["connection"]) == (201, "close")
    assert await wire.ends()


async def test_a_refused_head_request_is_answered_without_a_body(listener: Listener) -> None:
    with_two_hosts = request("HEAD", HALVES, "host: localhost")
    wire = await listener.wire(with_two_hosts)
    async with asyncio.timeout(LIVENESS_SECONDS):
        head = await wire.reader.readuntil(b"\r\n\r\n")
        rest = await wire.reader.read()
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"content-length: 0" not in head
    assert rest == b""


async def test_a_client_that_waits_for_leave_gets_it_only_for_a_body_that_is_read(
    listener: Listener, pool: Pool
) -> None:
    head = request("POST", HALVES, "expect: 100-continue", f"content-length: {len(BODY)}")
    refused = await (await listener.wire(head)).answer()
    assert refused is not None
    assert refused.status == 415
    with_type = head.replace(b"expect", b"content-type: application/json\r\nexpect")
    wire = await listener.wire(with_type)
    leave = await wire.answer()
    assert leave is not None
    assert leave.status == 100
    await wire.send(BODY)
    answer = await wire.answer()
    assert answer is not None
    assert answer.status == 201
    assert await stored(pool) == (1, 0, 0, 0)


async def test_a_message_is_stored_though_its_client_has_gone(
    listener: Listener, pool: Pool
) -> None:
    (await listener.wire(PREPARE)).writer.close()
    async with asyncio.timeout(LIVENESS_SECONDS):
        while await stored(pool) != (1, 0, 0, 0):
            pass
    answer = await (await listener.wire(PREPARE)).answer()
    assert answer is not None
    assert answer.status == 201
