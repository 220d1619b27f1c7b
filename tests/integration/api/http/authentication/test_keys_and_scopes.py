"""Keys: authentication, scopes, and the messages that a key can see."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from outbox.access import Scope
from outbox.postgres.operators.api_key_tokens import ApiKeyTokens
from outbox.postgres.sessions.connections import Pool
from tests.integration.api.fixtures_keys import PEPPER, guarded, token
from tests.integration.api.fixtures_rows import select
from tests.integration.api.fixtures_service import (
    GROUPS,
    HALVES,
)

pytestmark = pytest.mark.postgres


async def test_only_a_valid_key_is_accepted(
    database_url: str, pool: Pool, subtests: pytest.Subtests
) -> None:
    async with guarded(database_url) as service:
        good = await token(pool, Scope.ADMIN)
        text = good["Authorization"].removeprefix("Bearer ")
        tokens = ApiKeyTokens(PEPPER.encode())
        key_id, secret = tokens.read(text) or ("", "")
        other = secret[:-1] + ("0" if secret[-1] != "0" else "1")
        expired = (await token(pool, Scope.ADMIN, lives=-1))["Authorization"]
        refused = {
            "none": None,
            "empty": "",
            "scheme": f"Basic {text}",
            "checksum": f"Bearer {text[:-1]}0" if text[-1] != "0" else f"Bearer {text[:-1]}1",
            "secret": f"Bearer {tokens.issue(key_id, other)}",
            "unknown": f"Bearer {tokens.issue('0' * 16, secret)}",
            "expired": expired,
            "nonsense": "Bearer \x80\x81",
        }
        for name, header in refused.items():
            with subtests.test(name):
                headers = [] if header is None else [(b"Authorization", header.encode("latin-1"))]
                answer = await service.client.get(HALVES, headers=headers)
                assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
                assert answer.headers["www-authenticate"] == "Bearer"
        assert (await service.client.get(HALVES, headers=good)).status_code == 200
        for public in ("/livez", "/version", "/metrics", "/openapi.json", "/problems/not-found"):
            assert (await service.client.get(public)).status_code == 200
        counted = f'outbox_http_rejected_total{{reason="unauthenticated"}} {len(refused)}.0'
        assert counted in (await service.client.get("/metrics")).text.splitlines()


async def test_a_caller_is_known_before_the_body_is_read(database_url: str) -> None:
    async def endless() -> AsyncIterator[bytes]:
        yield b"{"
        raise AssertionError("the body was read")

    async with guarded(database_url) as service:
        json = {"content-type": "application/json"}
        for path in (HALVES, f"{HALVES}/batch"):
            answer = await service.client.post(path, content=endless(), headers=json)
            assert answer.status_code == 401
        answer = await service.client.put(f"{GROUPS}/x", content=endless(), headers=json)
        assert answer.status_code == 401


async def test_the_payload_and_a_filter_by_key_need_their_own_scope(
    database_url: str, pool: Pool
) -> None:
    async with guarded(database_url) as service:
        admin, reader = await token(pool, Scope.ADMIN), await token(pool, Scope.MESSAGES_READ)
        service.client.headers.update(admin)
        await service.put_group()
        at = f"{HALVES}/{await service.prepared_id(key='secret-key')}"
        plain = await service.client.get(at, headers=reader)
        assert plain.status_code == 200
        assert "secret-key" not in plain.text
        for path, query in ((at, {"include": "payload"}), (HALVES, {"key": "secret-key"})):
            answer = await service.client.get(path, params=query, headers=reader)
            assert (answer.status_code, answer.json()["code"]) == (403, "scope-missing")
            assert (await service.client.get(path, params=query)).status_code == 200


async def test_a_key_is_shown_once_and_stops_working_when_it_is_revoked(
    database_url: str, pool: Pool
) -> None:
    async with guarded(database_url) as service:
        client = service.client
        client.headers.update(await token(pool, Scope.ADMIN))
        asked = {"name": "ci", "producer_groups": ["*"], "scopes": ["messages:read"]}
        created = await client.post("/v1/api-keys", json=asked)
        assert created.status_code == 201
        key = created.json()
        assert created.headers["location"] == f"/v1/api-keys/{key['key_id']}"
        listed = await client.get("/v1/api-keys")
        assert key["key_id"] in listed.text
        assert key["api_key"] not in listed.text
        dump = str(await select(pool, "SELECT * FROM outbox.api_key"))
        assert key["api_key"].split("_")[2] not in dump
        own = {"Authorization": f"Bearer {key['api_key']}"}
        assert (await client.get(HALVES, headers=own)).status_code == 200
        assert (await client.delete(f"/v1/api-keys/{key['key_id']}")).status_code == 204
        assert (await client.get(HALVES, headers=own)).status_code == 401
        assert (await client.delete(f"/v1/api-keys/{key['key_id']}")).status_code == 404
