"""Documents, paths and queries that break readers are refused on every route."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final, LiteralString
from urllib.parse import quote

import pytest

from outbox.access import Scope
from outbox.postgres.sessions.connections import Pool
from tests.integration.api.fixtures_keys import PEPPER, RING, token
from tests.integration.api.fixtures_rows import select
from tests.integration.api.fixtures_service import settings_for
from tests.integration.api.fixtures_sockets import Listener, listening, request
from tests.integration.api.http.authentication.fixtures_routes import (
    NOTHING,
    PLACES,
    PUBLIC,
    ROUTES,
)

pytestmark = [pytest.mark.postgres, pytest.mark.deep]

KEYS: Final = {"auth_mode": "keys", "auth_pepper": PEPPER, "encryption_keys": RING}
DEEP: Final = 10_000
DIGITS: Final = b"9" * 100_000
VALUES: Final = {
    "a huge exponent": b"1e999999",
    "a tiny exponent": b"1e-999999",
    "a hundred thousand digits": DIGITS,
    "a fraction of a hundred thousand digits": b"0." + DIGITS,
    "an unpaired surrogate": b'"\\ud800"',
    "a NUL character": b'{"\\u0000":"\\u0000"}',
    "deep lists": b"[" * DEEP + b"]" * DEEP,
    "deep objects": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
    "no number": b"NaN",
}
TEXTS: Final = ("\0", "\ud800", "\ufeff", "\u202e", "..", "a" * 5000, "%", "'--", "\r\nx: y")
"""As a part of a path, or as a value of a query."""
STORED: LiteralString = """
SELECT (SELECT count(*) FROM outbox.half_message), (SELECT count(*) FROM outbox.op_message),
    (SELECT count(*) FROM outbox.audit_log), (SELECT count(*) FROM outbox.bulk_action),
    (SELECT count(*) FROM outbox.producer_group), (SELECT count(*) FROM outbox.api_key)
"""


def broken(valid: dict[str, Any]) -> Iterator[tuple[str, bytes]]:
    """Yield bodies that differ from a valid one in what no reader should accept."""
    good = json.dumps(valid).encode()
    first, value = next(iter(valid.items()))
    yield "a byte order mark", b"\xef\xbb\xbf" + good
    yield "UTF-16", good.decode().encode("utf-16")
    yield "a NUL byte before", b"\0" + good
    yield "a NUL byte after", good + b"\0"
    yield "a NUL byte inside", good[:-1] + b"\0}"
    yield "half a surrogate pair in UTF-8", b'{"\xed\xa0\x80":1,' + good[1:]
    again = json.dumps({first: value})[1:-1].encode()
    yield "a member twice", good[:-1] + b"," + again + b"}"
    yield (
        "a member twice, spelled differently",
        (good[:-1] + b',"\\u%04x' % ord(first[0]) + again[2:] + b"}"),
    )
    for name, text in VALUES.items():
        yield f"{name}, alone", text
        yield f"{name} in an unknown member", good[:-1] + b',"unknown":' + text + b"}"
        for member in valid:
            others = json.dumps({**valid, member: 0}).encode()
            yield (
                f"{name} in {member}",
                others.replace(f'"{member}": 0'.encode(), b'"%b":%b' % (member.encode(), text)),
            )


def body_of(operation: str) -> dict[str, Any] | None:
    """Return a valid body of an operation, with a member at least."""
    build = ROUTES[operation].body
    if build is None:
        return None
    return build(NOTHING) or {"overlap_seconds": 1}


WITH_BODY: Final = [operation for operation in ROUTES if body_of(operation) is not None]


def path_of(operation: str, part: str | None = None) -> str:
    """Return the path of an operation; ``part`` stands for each of its parameters."""
    _, template = PLACES[operation]
    names = {
        "message_id": NOTHING.message,
        "producer_group": NOTHING.group,
        "action_id": NOTHING.action,
        "key_id": NOTHING.key,
        "run_id": NOTHING.run,
        "form": "html",
    }
    hostile = None if part is None else quote(part, safe="", errors="surrogatepass")
    return re.sub(r"\{(\w+)\}", lambda found: hostile or names.get(found[1], "0"), template)


async def status(listener: Listener, message: bytes) -> int:
    """Send a request over a connection of its own; return the status."""
    wire = await listener.wire(message)
    answer = await wire.answer()
    wire.writer.close()
    assert answer is not None
    return answer.status


@pytest.fixture
async def admin(pool: Pool) -> str:
    """Return an administrator's key as a line of a head."""
    return f"authorization: {(await token(pool, Scope.ADMIN))['Authorization']}"


async def test_no_route_takes_a_body_that_readers_could_read_differently(
    database_url: str, pool: Pool, admin: str, subtests: pytest.Subtests
) -> None:
    before = await select(pool, STORED)
    async with listening(settings_for(database_url, **KEYS)) as listener:
        for operation in WITH_BODY:
            method, path = PLACES[operation][0], path_of(operation)
            for name, body in broken(body_of(operation) or {}):
                with subtests.test(operation, body=name):
                    sent = request(method, path, admin, "connection: close", body=body)
                    assert 400 <= await status(listener, sent) < 500
    assert await select(pool, STORED) == before


async def test_no_path_and_no_query_breaks_a_route(
    database_url: str, pool: Pool, admin: str, subtests: pytest.Subtests
) -> None:
    before = await select(pool, STORED)
    async with listening(settings_for(database_url, **KEYS)) as listener:
        for operation in [*ROUTES, *PUBLIC]:
            method = PLACES[operation][0]
            body = json.dumps(body_of(operation)).encode() if operation in WITH_BODY else b""
            parts = TEXTS if "{" in PLACES[operation][1] else ()
            for part in parts:
                with subtests.test(operation, part=part[:9].encode("utf-8", "replace")):
                    path = path_of(operation, part)
                    sent = request(method, path, admin, "connection: close", body=body)
                    assert 400 <= await status(listener, sent) < 500
            for query in (f"{quote(text, errors='surrogatepass')}=1" for text in TEXTS):
                with subtests.test(operation, query=query[:9]):
                    path = f"{path_of(operation)}?{query}&limit=1e9&cursor=%00&{query[:3]}"
                    sent = request(method, path, admin, "connection: close", body=body)
                    assert 400 <= await status(listener, sent) < 500
    assert await select(pool, STORED) == before
