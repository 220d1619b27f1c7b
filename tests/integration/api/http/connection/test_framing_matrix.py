"""Lengths, transfer codings, folded lines and pipelining: what is refused has no effect."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest

from outbox.postgres.sessions.connections import Pool
from tests.integration.api.fixtures_rows import stored, until_a_session_waits
from tests.integration.api.fixtures_service import (
    GROUP,
    GROUPS,
    HALVES,
    prepare_body,
    settings_for,
)
from tests.integration.api.fixtures_sockets import Listener, Wire, listening, request

pytestmark = pytest.mark.postgres

PREPARE = json.dumps(prepare_body()).encode()
CHUNKED = b"%x\r\n%s\r\n0\r\n\r\n" % (len(PREPARE), PREPARE)
JSON = "content-type: application/json"
LIVE = request("GET", "/livez")
GOOD = request("POST", HALVES, body=PREPARE)
DELETE = request("DELETE", f"{GROUPS}/victim")


def prepare(*headers: str, body: bytes = PREPARE) -> bytes:
    """Return a prepare whose framing is given by its headers."""
    return request("POST", HALVES, JSON, *headers, body=body, length=False)


def delete(*headers: str, body: bytes = b"") -> bytes:
    """Return a request whose effect needs no body."""
    return request("DELETE", f"{GROUPS}/victim", *headers, body=body, length=False)


def chunked(body: bytes, size: int, last: bytes = b"0\r\n\r\n") -> bytes:
    """Return a body in chunks of so many bytes."""
    parts = (body[at : at + size] for at in range(0, len(body), size))
    return b"".join([b"%x\r\n%s\r\n" % (len(part), part) for part in parts]) + last


LENGTH = f"content-length: {len(PREPARE)}"
TE = "transfer-encoding: chunked"
BLANK = PREPARE + b" " * 10_000
TRAILERS = b"0\r\n" + b"a: b\r\n" * 20_000 + b"\r\n"

PREPARES: dict[str, tuple[bytes, list[int], int]] = {
    "one length": (prepare(LENGTH), [201], 1),
    "chunks": (prepare(TE, body=CHUNKED), [201], 1),
    "chunks, other case": (prepare("Transfer-Encoding: CHUNKED", body=CHUNKED), [201], 1),
    "chunks of a byte": (prepare(TE, body=chunked(PREPARE, 1)), [201], 1),
    "ten thousand chunks of a byte": (prepare(TE, body=chunked(BLANK, 1)) + GOOD, [413], 0),
    "trailers without end": (prepare(TE, body=chunked(PREPARE, 9, TRAILERS)) + GOOD, [431], 0),
    "chunk extension": (prepare(TE, body=CHUNKED.replace(b"\r\n", b";a=b\r\n", 1)), [201], 1),
    "length and chunks": (prepare(LENGTH, TE, body=CHUNKED), [400], 0),
    "chunks and length": (prepare(TE, LENGTH, body=CHUNKED), [400], 0),
    "two equal lengths": (prepare(LENGTH, LENGTH), [400], 0),
    "two lengths": (prepare(LENGTH, "content-length: 1"), [400], 0),
    "list of lengths": (prepare(f"{LENGTH}, {len(PREPARE)}"), [400], 0),
    "signed length": (prepare(f"content-length: +{len(PREPARE)}"), [400], 0),
    "negative length": (prepare("content-length: -1"), [400], 0),
    "length in hex": (prepare(f"content-length: {len(PREPARE):#x}"), [400], 0),
    "length beyond 64 bits": (prepare(f"content-length: {2**64 + len(PREPARE)}"), [400], 0),
    "unknown coding": (prepare("transfer-encoding: gzip"), [400], 0),
    "coding before chunks": (prepare("transfer-encoding: gzip, chunked", body=CHUNKED), [400], 0),
    "chunks twice": (prepare("transfer-encoding: chunked, chunked", body=CHUNKED), [400], 0),
    "two codings": (prepare(TE, TE, body=CHUNKED), [400], 0),
    "identity": (prepare("transfer-encoding: identity", LENGTH), [400], 0),
    "coding with a tab": (prepare("transfer-encoding: \tchunked\x0b", body=CHUNKED), [400], 0),
    "space before the colon": (prepare("transfer-encoding : chunked", body=CHUNKED), [400], 0),
    "folded coding": (prepare("transfer-encoding:\r\n chunked", body=CHUNKED), [400], 0),
    "folded header": (prepare(LENGTH, "x-a: b\r\n c"), [400], 0),
    "line without a colon": (prepare(LENGTH, "nonsense"), [400], 0),
    "NUL in a header": (prepare(LENGTH, "x-a: \x00"), [400], 0),
    "bare CR": (prepare(LENGTH, "x-a: b\rc: d"), [400], 0),
    "bad chunk size": (prepare(TE, body=b"zz\r\n"), [400], 0),
    "negative chunk size": (prepare(TE, body=b"-1\r\n"), [400], 0),
    "chunk without its end": (prepare(TE, body=CHUNKED.replace(b"}\r\n0", b"}0")), [400], 0),
    "chunk size beyond 64 bits": (prepare(TE, body=b"1" * 17 + b"\r\n"), [400], 0),
    "no host": (GOOD.replace(b"host: localhost\r\n", b""), [400], 0),
    "two hosts": (prepare(LENGTH, "host: localhost"), [400], 0),
    "two keys": (prepare(LENGTH, "authorization: a", "authorization: b"), [400], 0),
    "two content types": (prepare(LENGTH, JSON), [400], 0),
    "HTTP/1.0 and chunks": (prepare(TE, body=CHUNKED).replace(b"1.1", b"1.0", 1), [400], 0),
    "HTTP/2 preface": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", [400], 0),
    "HTTP/2.0": (GOOD.replace(b"HTTP/1.1", b"HTTP/2.0"), [400], 0),
    "HTTP/0.9": (b"GET /livez\r\n\r\n", [400], 0),
    "HTTP/3.0": (GOOD.replace(b"HTTP/1.1", b"HTTP/3.0"), [400], 0),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", [400], 0),
    "path that is not ASCII": (GOOD.replace(HALVES.encode(), b"/\xff"), [400], 0),
    "CONNECT": (b"CONNECT a:1 HTTP/1.1\r\nhost: localhost\r\n\r\n", [400], 0),
    "authority that is not ours": (GOOD.replace(b" /v1", b" http://evil.example/v1"), [201], 1),
    "blank lines first": (b"\r\n\r\n" + GOOD, [201], 1),
    "upgrade with a body": (prepare(LENGTH, "connection: upgrade", "upgrade: h2c"), [400], 0),
    "trailer with a key": (
        prepare(TE, body=CHUNKED[:-2] + b"idempotency-key: a\r\nhost: b\r\n\r\n"),
        [201],
        1,
    ),
    # Pipelining: what is complete before a fault is answered, in order, and nothing after it runs.
    "two prepares": (GOOD + GOOD, [201, 201], 2),
    "prepare, then nonsense": (GOOD + b"NONSENSE\r\n\r\n", [201], 1),
    "prepare, then a bad coding": (GOOD + prepare("transfer-encoding: a"), [201], 1),
    "prepare, then a bad chunk": (GOOD + prepare(TE, body=b"zz\r\n"), [201], 1),
    "nonsense, then a prepare": (b"NONSENSE\r\n\r\n" + GOOD, [400], 0),
    "bad chunk, then a prepare": (prepare(TE, body=b"zz\r\n") + GOOD, [400], 0),
    "bad coding, then a prepare": (prepare("transfer-encoding: a") + GOOD, [400], 0),
    "prepare hidden in a refused body": (
        delete(f"content-length: {len(GOOD)}", body=GOOD),
        [413],
        0,
    ),
    "large head, then a prepare": (request("GET", "/livez", "a: " + "b" * 70_000) + GOOD, [431], 0),
    "probe, prepare, probe": (LIVE + GOOD + LIVE, [200, 201, 200], 1),
    "close, then a prepare": (request("GET", "/livez", "connection: close") + GOOD, [200], 0),
}

DELETES: dict[str, tuple[bytes, list[int], bool]] = {
    "plain": (delete(), [204], True),
    "length zero": (delete("content-length: 0"), [204], True),
    "unknown coding": (delete("transfer-encoding: foo"), [400], False),
    "unknown coding and chunks": (delete("transfer-encoding: foo", TE), [400], False),
    "two lengths": (delete("content-length: 0", "content-length: 5"), [400], False),
    "folded length": (delete("content-length:\r\n 0"), [400], False),
    "chunks": (delete(TE, body=b"0\r\n\r\n"), [413], False),
    "body": (delete("content-length: 2", body=b"{}"), [413], False),
    "body that never comes": (delete("content-length: 2"), [413], False),
}


async def closed_after(wire: Wire, expected: list[int]) -> list[int]:
    """Read the expected answers; then end the input and read what else comes."""
    found = []
    for _ in expected:
        answer = await wire.answer()
        found.append(answer.status if answer else 0)
    with suppress(OSError):  # the server may have closed first
        wire.writer.write_eof()
    return found + await wire.statuses()


async def exchange(listener: Listener, data: bytes, expected: list[int], cut: int) -> list[int]:
    """Send the data in one piece, or in two with a pause, and return the statuses."""
    if not cut:
        return await closed_after(await listener.wire(data), expected)
    wire = await listener.wire(data[:cut])
    await listener.client.get("/livez")  # the first piece has been read
    await wire.send(data[cut:])
    return await closed_after(wire, expected)


async def test_a_prepare_is_stored_if_and_only_if_it_is_answered_so(
    database_url: str, pool: Pool, subtests: pytest.Subtests
) -> None:
    async with listening(settings_for(database_url)) as listener:
        await listener.put_group(GROUP)
        for name, (data, expected, effects) in PREPARES.items():
            head = data.find(b"\r\n\r\n") + 4
            for cut in (0, head) if len(data) > head > 40 else (0,):
                with subtests.test(name, cut=cut):
                    before = (await stored(pool))[0]
                    assert await exchange(listener, data, expected, cut) == expected
                    assert (await stored(pool))[0] - before == effects


async def test_a_request_that_is_refused_for_its_form_deletes_nothing(
    database_url: str, subtests: pytest.Subtests
) -> None:
    async with listening(settings_for(database_url)) as listener:
        for name, (data, expected, effect) in DELETES.items():
            for cut in (0, data.find(b"\r\n\r\n") + 4):
                with subtests.test(name, cut=cut):
                    await listener.put_group("victim")
                    assert await exchange(listener, data, expected, cut) == expected
                    answer = await listener.client.get(f"{GROUPS}/victim")
                    assert (answer.status_code == 404) is effect


async def test_a_pipelined_fault_leaves_the_answer_of_the_request_before(
    database_url: str,
) -> None:
    async with listening(settings_for(database_url)) as listener:
        await listener.put_group("victim")
        wire = await listener.wire(DELETE + b"NONSENSE\r\n\r\n")
        assert await wire.statuses() == [204]


async def test_no_more_than_a_few_requests_wait_on_one_connection(database_url: str) -> None:
    async with listening(settings_for(database_url)) as listener:
        wire = await listener.wire(LIVE * 1000)
        assert await wire.statuses() == [200] * 17


async def test_a_head_of_thousands_of_small_headers_is_refused_before_its_end(
    database_url: str,
) -> None:
    async with listening(settings_for(database_url)) as listener:
        wire = await listener.wire(LIVE[:-2] + b"a:b\r\n" * 10_000)
        assert await wire.statuses() == [431]


async def test_the_heads_that_wait_on_one_connection_take_as_much_memory_as_one_head(
    database_url: str, pool: Pool
) -> None:
    small = LIVE[:-2] + b"a:b\r\n" * 200 + b"\r\n"
    async with listening(settings_for(database_url)) as listener:
        await listener.put_group(GROUP)
        async with pool.connection() as holder, holder.transaction():
            await holder.execute("LOCK TABLE outbox.half_message IN ACCESS EXCLUSIVE MODE")
            last = request("GET", "/livez", "connection: close")
            wire = await listener.wire(GOOD + small * 15 + last)
            await until_a_session_waits(pool)
        assert await wire.statuses() == [201, 200, 200]


async def test_small_chunks_without_end_are_refused_after_the_answer_too(database_url: str) -> None:
    async with listening(settings_for(database_url)) as listener:
        wire = await listener.wire(request("POST", "/livez", TE))
        answer = await wire.answer()
        assert answer is not None
        assert answer.status == 405
        await wire.send(chunked(BLANK, 1) + request("GET", "/livez", "connection: close"))
        assert await wire.statuses() == []


async def test_a_large_body_may_come_in_many_chunks(database_url: str, pool: Pool) -> None:
    items = [prepare_body(value="x" * 900_000)] * 6
    body = chunked(json.dumps({"items": items}).encode(), 300)
    async with listening(settings_for(database_url)) as listener:
        await listener.put_group(GROUP)
        sent = request("POST", f"{HALVES}/batch", JSON, TE, body=body, length=False)
        answer = await (await listener.wire(sent)).answer()
        assert answer is not None
        assert answer.status == 207
        assert (await stored(pool))[0] == len(items)
