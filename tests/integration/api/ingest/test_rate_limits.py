"""Rate limits of an API key: prepares and reads are refused with 429, an end never is."""

from __future__ import annotations

import pytest

from outbox.access import Scope
from outbox.postgres.sessions.connections import Pool
from tests.integration.api.fixtures_keys import guarded, token
from tests.integration.api.fixtures_service import (
    CHECK_URL,
    GROUP,
    GROUPS,
    HALVES,
    Service,
    prepare_body,
)

pytestmark = pytest.mark.postgres

CHECKED = {"check_url": CHECK_URL}
SLOW = {"rate_prepare_per_second": 1, "rate_read_per_second": 1, "http_workers": 64}
"""A process' share is one request per 64 seconds, so no test gets a second one."""


async def prepared(service: Service, key: dict[str, str]) -> str:
    """Prepare with a key that has the scope; return the message id."""
    answer = await service.client.post(HALVES, json=prepare_body(), headers=key)
    assert answer.status_code == 201, answer.text
    message_id: str = answer.json()["message_id"]
    return message_id


async def test_a_prepare_above_the_rate_is_refused_with_429_and_retry_after(
    database_url: str, pool: Pool
) -> None:
    async with guarded(database_url, **SLOW) as service:
        key, other = await token(pool, Scope.ADMIN), await token(pool, Scope.ADMIN)
        service.client.headers.update(key)
        await service.put_group()
        message_id = await prepared(service, key)
        refused = await service.client.post(HALVES, json=prepare_body(), headers=key)
        assert (refused.status_code, refused.json()["code"]) == (429, "rate-limited")
        assert refused.json()["retryable"] is True
        assert int(refused.headers["retry-after"]) >= 1
        assert refused.headers["ratelimit"].startswith('"prepare";r=0;t=')
        batch = {"items": [prepare_body()]}
        assert (await service.client.post(f"{HALVES}/batch", json=batch)).status_code == 429
        await prepared(service, other)
        page = (await service.client.get("/metrics")).text
        assert 'outbox_http_rejected_total{reason="rate-limited"} 2.0' in page
        assert (await service.client.get(f"{HALVES}/{message_id}")).status_code == 200


async def test_keys_that_a_bound_key_creates_share_its_rates(database_url: str, pool: Pool) -> None:
    async with guarded(database_url, **SLOW) as service:
        unbound = await token(pool, Scope.ADMIN)
        for group in (GROUP, "other"):
            await service.client.put(f"{GROUPS}/{group}", json=CHECKED, headers=unbound)
        bound = await token(pool, Scope.ADMIN, groups=(GROUP, "other"))
        child = await made(service, bound, GROUP)
        grandchild = await made(service, child, GROUP)
        await prepared(service, grandchild)
        for key in (bound, child, grandchild):
            refused = await service.client.post(HALVES, json=prepare_body(), headers=key)
            assert (refused.status_code, refused.json()["code"]) == (429, "rate-limited")
        assert (await service.client.get(HALVES, headers=child)).status_code == 200
        assert (await service.client.get(HALVES, headers=bound)).status_code == 429
        await prepared(service, await made(service, unbound, GROUP))
        await prepared(service, await token(pool, Scope.ADMIN, groups=(GROUP,)))


async def made(service: Service, key: dict[str, str], *groups: str) -> dict[str, str]:
    """Create a key with another one; return its header."""
    body = {"name": "n", "producer_groups": groups, "scopes": ["admin"]}
    answer = await service.client.post("/v1/api-keys", json=body, headers=key)
    assert answer.status_code == 201, answer.text
    return {"Authorization": f"Bearer {answer.json()['api_key']}"}


async def test_p25_a_key_without_any_prepare_left_still_ends(database_url: str, pool: Pool) -> None:
    async with guarded(database_url, **SLOW) as service:
        service.client.headers.update(await token(pool, Scope.ADMIN))
        await service.put_group()
        message_id = await prepared(service, {})
        assert (await service.prepare()).status_code == 429
        for _ in range(50):
            assert (await service.end(message_id, "COMMIT")).status_code == 200
        item = {"message_id": message_id, "decision": "COMMIT"}
        batch = await service.client.post(f"{HALVES}/end-batch", json={"items": [item] * 1000})
        assert batch.status_code == 207
        assert {each["status"] for each in batch.json()["items"]} == {200}


async def test_a_read_above_the_rate_is_refused_and_probes_are_not(
    database_url: str, pool: Pool
) -> None:
    async with guarded(database_url, **SLOW) as service:
        service.client.headers.update(await token(pool, Scope.ADMIN))
        first = await service.client.get(HALVES)
        assert first.headers["ratelimit-policy"] == '"read";q=1;w=1'
        refused = await service.client.get(HALVES)
        assert (refused.status_code, refused.json()["code"]) == (429, "rate-limited")
        assert refused.headers["ratelimit"].startswith('"read";r=0;t=')
        for _ in range(20):
            assert (await service.client.get("/livez")).status_code == 200
