"""A client that offers HTTP/2 without TLS, as Java's does, is answered in HTTP/1.1."""

from __future__ import annotations

import json
import re

import pytest

from tests.integration.api.fixtures_api_process import served
from tests.integration.api.fixtures_service import GROUPS, HALVES, prepare_body
from tests.integration.api.fixtures_sockets import request

pytestmark = pytest.mark.postgres

OFFER = (
    "Connection: Upgrade, HTTP2-Settings",
    "Upgrade: h2c",
    "HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA",
)


async def test_an_offer_of_http_2_is_ignored_and_the_body_is_read(database_url: str) -> None:
    body = json.dumps(prepare_body()).encode()
    not_json = b"\r\nUpgrade: h2c\r\n"
    async with served(database_url) as api:
        group = {"check_url": "http://127.0.0.1:8999/check"}
        assert (await api.client.put(f"{GROUPS}/billing", json=group)).status_code == 201
        sent = [
            *(request("POST", HALVES, *OFFER, body=each) for each in (body, not_json, body)),
            request("GET", "/livez", *OFFER, "Connection: close"),
        ]
        answers = await api.raw(b"".join(sent))
    assert re.findall(rb"HTTP/1\.1 (\d+)", answers) == [b"201", b"400", b"201", b"200"]
