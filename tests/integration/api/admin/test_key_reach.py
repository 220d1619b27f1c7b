"""No key reaches further than the key, or the person, that made it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from outbox.access import Scope
from outbox.postgres.sessions.connections import Pool
from tests.integration.api.fixtures_keys import Header, guarded, token
from tests.integration.api.fixtures_rows import select
from tests.integration.api.fixtures_service import (
    CHECK_URL,
    GROUPS,
    Service,
)

pytestmark = pytest.mark.postgres

KEYS = "/v1/api-keys"
OTHER_URL = "http://127.0.0.1:8998/check"


@pytest.fixture
async def keyed(database_url: str, pool: Pool) -> AsyncIterator[Service]:
    """Yield the service with keys, and a client that holds the key of an administrator."""
    async with guarded(database_url) as service:
        service.client.headers.update(await token(pool, Scope.ADMIN))
        yield service


async def created(service: Service, key: Header, *groups: str, **fields: Any) -> httpx2.Response:
    """Ask for a key with these groups."""
    body = {"name": "n", "producer_groups": groups, "scopes": ["messages:read"], **fields}
    return await service.client.post(KEYS, json=body, headers=key)


@pytest.mark.parametrize(
    "groups", [("*",), ("theirs",), ("mine", "theirs"), ("mine", "*"), ("nobody",)], ids=str
)
async def test_a_bound_administrator_makes_no_key_beyond_its_own_groups(
    keyed: Service, pool: Pool, groups: tuple[str, ...]
) -> None:
    bound = await token(pool, Scope.ADMIN, groups=("mine", "ours"))
    answer = await created(keyed, bound, *groups)
    assert answer.status_code == 403, answer.text
    assert answer.json()["code"] == "scope-missing"
    assert "groups" in answer.json()["detail"]
    assert await select(pool, "SELECT 1 FROM outbox.api_key WHERE name = 'n'") == []


async def test_a_bound_administrator_makes_and_sees_and_revokes_the_keys_of_its_own_groups(
    keyed: Service, pool: Pool
) -> None:
    client = keyed.client
    bound = await token(pool, Scope.ADMIN, groups=("mine", "ours"))
    made = await created(keyed, bound, "mine", scopes=["admin"])
    assert made.status_code == 201
    foreign = (await created(keyed, {}, "theirs", "mine")).json()
    whole = (await created(keyed, {}, "*")).json()
    listed = (await client.get(KEYS, headers=bound)).json()["data"]
    assert {tuple(key["producer_groups"]) for key in listed} == {("mine", "ours"), ("mine",)}
    for key in (foreign, whole):
        refused = await client.delete(f"{KEYS}/{key['key_id']}", headers=bound)
        assert (refused.status_code, refused.json()["code"]) == (404, "not-found")
        own = {"Authorization": f"Bearer {key['api_key']}"}
        assert (await client.get("/v1/half-messages", headers=own)).status_code == 200
    revoked = await client.delete(f"{KEYS}/{made.json()['key_id']}", headers=bound)
    assert revoked.status_code == 204
    everything = (await client.get(KEYS)).json()["data"]
    assert {key["key_id"] for key in everything} >= {foreign["key_id"], whole["key_id"]}


async def put(service: Service, key: Header, name: str, **fields: Any) -> httpx2.Response:
    """Replace a group's settings, whatever version it has."""
    body = {"check_url": CHECK_URL, **fields}
    headers = {"If-Match": "*", **key}
    return await service.client.put(f"{GROUPS}/{name}", json=body, headers=headers)


@pytest.mark.parametrize("topics", [[], ["other"], ["invoices.*", "other"]], ids=str)
async def test_the_topics_of_a_group_are_changed_by_an_administrator_alone(
    keyed: Service, pool: Pool, topics: list[str]
) -> None:
    writer = await token(pool, Scope.GROUPS_WRITE, Scope.MESSAGES_PAYLOAD, groups=("mine",))
    await put(keyed, {}, "mine", topics=["invoices.*"])
    refused = await put(keyed, writer, "mine", topics=topics)
    assert refused.status_code == 403, refused.text
    assert refused.json()["code"] == "scope-missing"
    assert "topics" in refused.json()["detail"]
    assert Scope.ADMIN in refused.json()["detail"]
    left = await put(keyed, writer, "mine", topics=["invoices.*"], check_max=3)
    assert (left.status_code, left.json()["check_max"]) == (200, 3)
    changed = await put(keyed, {}, "mine", topics=topics)
    assert (changed.status_code, changed.json()["topics"]) == (200, topics)


async def test_the_payload_goes_into_checks_only_by_who_may_read_it(
    keyed: Service, pool: Pool
) -> None:
    writer = await token(pool, Scope.GROUPS_WRITE, groups=("mine",))
    reader = await token(pool, Scope.GROUPS_WRITE, Scope.MESSAGES_PAYLOAD, groups=("mine",))
    await put(keyed, {}, "mine")
    refused = await put(keyed, writer, "mine", check_payload=True)
    assert refused.status_code == 403, refused.text
    assert refused.json()["code"] == "scope-missing"
    assert Scope.MESSAGES_PAYLOAD in refused.json()["detail"]
    assert (await put(keyed, reader, "mine", check_payload=True)).status_code == 200
    moved = await put(keyed, writer, "mine", check_payload=True, check_url=OTHER_URL)
    assert moved.status_code == 403, moved.text
    assert moved.json()["code"] == "scope-missing"
    slower = await put(keyed, writer, "mine", check_payload=True, check_max=3)
    assert (slower.status_code, slower.json()["check_max"]) == (200, 3)
    assert (await put(keyed, writer, "mine", check_url=OTHER_URL)).status_code == 200
    assert (await put(keyed, writer, "mine", check_payload=True)).status_code == 403
