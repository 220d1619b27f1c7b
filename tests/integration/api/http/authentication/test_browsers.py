"""AUTH_MODE=dev-insecure serves programs on this machine, not the pages of strangers."""

from __future__ import annotations

import json

import pytest

from api.wiring import build
from outbox.errors import ConfigurationError
from outbox.postgres.sessions.connections import Pool
from tests.integration.api.fixtures_keys import WITH_KEYS
from tests.integration.api.fixtures_rows import stored
from tests.integration.api.fixtures_service import GROUP, HALVES, prepare_body, settings_for
from tests.integration.api.fixtures_sockets import listening

pytestmark = pytest.mark.postgres

BODY = json.dumps(prepare_body()).encode()

SERVED = (
    ("localhost",),
    ("LOCALHOST:8080",),
    ("127.0.0.1:{port}",),
    ("127.9.8.7",),
    ("[::1]:8080",),
    ("localhost:8080", "origin: http://localhost:8080"),
    ("localhost", "sec-fetch-site: same-origin"),
    ("localhost", "sec-fetch-site: none"),
)
REFUSED = (
    ("evil.example",),
    ("evil.example:{port}",),
    ("localhost.evil.example",),
    ("127.0.0.1.evil.example",),
    ("localhost@evil.example",),
    ("127.0.0.1:{port}:80",),
    ("10.0.0.1",),
    ("0.0.0.0",),
    ("[::]",),
    ("",),
    ("localhost", "origin: http://evil.example"),
    ("localhost", "origin: https://localhost"),
    ("localhost:8080", "origin: http://localhost:3000"),
    ("localhost", "origin: null"),
    ("localhost", "sec-fetch-site: cross-site"),
    ("localhost", "sec-fetch-site: same-site"),
    ("localhost", "Sec-Fetch-Site: Cross-Site"),
)


async def test_only_loopback_names_and_no_foreign_page_are_served(
    database_url: str, pool: Pool, subtests: pytest.Subtests
) -> None:
    async with listening(settings_for(database_url)) as listener:
        await listener.put_group(GROUP)
        for cases, statuses in ((SERVED, (201, 200)), (REFUSED, (403, 403))):
            for host, *headers in cases:
                lines = "\r\n".join([f"host: {host.format(port=listener.port)}", *headers])
                with subtests.test(lines):
                    before = (await stored(pool))[0]
                    post = f"POST {HALVES} HTTP/1.1\r\n{lines}\r\ncontent-type: application/json"
                    head = f"{post}\r\ncontent-length: {len(BODY)}\r\n\r\n".encode()
                    wire = await listener.wire(head + BODY)
                    prepared = await wire.answer()
                    await wire.send(f"GET /livez HTTP/1.1\r\n{lines}\r\n\r\n".encode())
                    live = await wire.answer()
                    assert prepared is not None
                    assert live is not None
                    assert (prepared.status, live.status) == statuses
                    assert (await stored(pool))[0] - before == (statuses[0] == 201)
                    assert (b"csrf-refused" in prepared.body) is (statuses[0] == 403)


def test_only_our_own_program_builds_a_service_without_keys(database_url: str) -> None:
    for elsewhere in (None, "0.0.0.0", "::", "10.0.0.1", "example.org"):
        with pytest.raises(ConfigurationError, match="loopback"):
            build(settings_for(database_url), listens_on=elsewhere)


async def test_with_keys_every_name_is_served(database_url: str) -> None:
    async with listening(settings_for(database_url, **WITH_KEYS)) as listener:
        for headers in ("host: outbox.example", "host: localhost\r\norigin: http://evil.example"):
            wire = await listener.wire(f"GET /livez HTTP/1.1\r\n{headers}\r\n\r\n".encode())
            answer = await wire.answer()
            assert answer is not None
            assert answer.status == 200
