"""Producer groups: registered once, changed under a version, never deleted while in use."""

from __future__ import annotations

from typing import Any

import pytest

from api.admin.models.producer_groups import GroupRequest
from outbox.postgres.checks.keyring import key_ring
from outbox.postgres.checks.producer_groups import PostgresProducerGroups
from outbox.postgres.sessions.connections import Pool
from tests.integration.api.fixtures_rows import select
from tests.integration.api.fixtures_service import CHECK_URL, GROUPS, HALVES, Service

pytestmark = pytest.mark.postgres

AT = f"{GROUPS}/shop"
OWN = "whsec_a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s="
OTHER = "whsec_" + "QUFB" * 20 + "QQ=="
"""It has 61 bytes."""


async def test_a_new_group_returns_its_secret_once_and_stores_it_encrypted(
    bare_service: Service, pool: Pool
) -> None:
    created = await bare_service.put_group("shop")
    assert created.status_code == 201
    assert created.headers["etag"] == '"v1"'
    secret = created.json()["check_secret"]
    assert secret.startswith("whsec_")
    again = await bare_service.put_group("shop")
    assert (again.status_code, "check_secret" in again.json()) == (200, False)
    shown = await bare_service.client.get(AT)
    assert "secret" not in shown.text
    [(sealed,)] = await select(pool, "SELECT secret FROM outbox.producer_group")
    assert secret.encode() not in bytes(sealed)
    assert key_ring(None, insecure=True).open(bytes(sealed), "shop") == secret


async def test_a_secret_of_ones_own_is_never_shown_and_replaces_another_or_a_lost_one(
    bare_service: Service, pool: Pool
) -> None:
    async def put(secret: str | None, status: int) -> None:
        body = {"check_url": CHECK_URL, "check_secret": secret}
        answer = await bare_service.client.put(AT, json=body, headers={"If-Match": "*"})
        assert (answer.status_code, "whsec_" in answer.text) == (status, False)

    groups = PostgresProducerGroups(pool, key_ring(None, insecure=True))
    for secret, status in [(OWN, 201), (None, 200), (OTHER, 200), (OTHER, 200)]:
        await put(secret, status)
    assert (await groups.with_secrets("shop"))[0].secrets == (OTHER, OWN)
    await select(pool, "UPDATE outbox.producer_group SET secret = '\\x00' RETURNING 1")
    await put(OWN, 200)
    assert (await groups.with_secrets("shop"))[0].secrets == (OWN, OWN)
    log = str(await select(pool, "SELECT action, detail FROM outbox.audit_log"))
    assert (log.count("group.rotate_secret"), "whsec_" in log) == (2, False)


async def test_a_change_needs_the_version_that_was_read(bare_service: Service) -> None:
    client = bare_service.client
    await bare_service.put_group("shop")
    body = {"check_url": CHECK_URL, "check_max": 3}
    missing = await client.put(AT, json=body)
    assert (missing.status_code, missing.json()["code"]) == (428, "precondition-required")
    for stale in ('"v9"', "nonsense"):
        refused = await client.put(AT, json=body, headers={"If-Match": stale})
        assert (refused.status_code, refused.json()["code"]) == (412, "precondition-failed")
    lines = [("If-Match", tags) for tags in ('"v9"', '"v8", W/"v1"', '"v7"')]
    changed = await client.put(AT, json=body, headers=lines)
    assert (changed.status_code, changed.headers["etag"]) == (200, '"v2"')
    assert changed.json()["check_max"] == 3
    star = await client.put(AT, json={"check_url": CHECK_URL}, headers={"If-Match": "*"})
    assert (star.status_code, star.json()["check_max"], star.json()["version"]) == (200, 15, 3)
    nulls = dict.fromkeys(GroupRequest.model_fields.keys() - {"check_url"})
    equal = await client.put(AT, json={"check_url": CHECK_URL, **nulls})
    assert (equal.status_code, equal.json()["version"]) == (200, 3)


BAD: list[tuple[dict[str, Any], str, str]] = [
    ({"check_url": ...}, "invalid-request", "/check_url"),
    ({"check_url": "ftp://127.0.0.1/x"}, "check-url-forbidden", "/check_url"),
    ({"check_url": "http://169.254.169.254/"}, "check-url-forbidden", "/check_url"),
    ({"check_interval_seconds": "30"}, "invalid-request", "/check_interval_seconds"),
    ({"check_max": 0}, "invalid-request", "/check_max"),
    ({"on_check_max": "commit"}, "invalid-request", "/on_check_max"),
    ({"topics": ["a/b"]}, "invalid-request", "/topics/0"),
    ({"topics": ["__x*"]}, "topic-reserved", "/topics/0"),
    ({"max_age_seconds": 604800}, "invalid-request", "/max_age_seconds"),
    ({"paused": True}, "invalid-request", "/paused"),
    ({"check_secret": OWN[:-1]}, "invalid-request", "/check_secret"),
    ({"check_secret": f"whsec_{'QUFB' * 22}"}, "invalid-request", "/check_secret"),
]


async def test_a_group_that_breaks_a_rule_is_refused_and_not_stored(
    bare_service: Service, pool: Pool, subtests: pytest.Subtests
) -> None:
    for fields, slug, pointer in BAD:
        with subtests.test(str(fields)[:60]):
            body = {"check_url": CHECK_URL, **fields}
            body = {name: value for name, value in body.items() if value is not ...}
            answer = await bare_service.client.put(AT, json=body)
            assert (answer.status_code, answer.json()["code"]) == (422, slug), answer.text
            assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]
            assert (slug == "check-url-forbidden") is bool(answer.json().get("rule"))
            assert "169.254" not in answer.text
    for name in ("-x", "a b", "g" * 129, "%0a"):
        answer = await bare_service.client.put(f"{GROUPS}/{name}", json={"check_url": CHECK_URL})
        assert answer.status_code == 422, answer.text
    assert await select(pool, "SELECT 1 FROM outbox.producer_group") == []


async def test_a_group_is_deleted_only_without_unfinished_messages(
    service: Service,
) -> None:
    client = service.client
    message_id = await service.prepared_id()
    for decision in (None, "COMMIT"):
        if decision:
            await service.end(message_id, decision)
        refused = await client.delete(f"{GROUPS}/billing")
        assert refused.status_code == 409
        assert refused.json()["code"] == "group-in-use"
    await service.put_group("shop")
    rolled_back = await service.prepared_id(producer_group="shop")
    await service.end(rolled_back, "ROLLBACK")
    stale = await client.delete(AT, headers={"If-Match": '"v7"'})
    assert stale.status_code == 412
    assert (await client.delete(AT)).status_code == 204
    assert (await client.get(AT)).status_code == 404
    prepared = await service.prepare(producer_group="shop")
    assert (prepared.status_code, prepared.json()["code"]) == (404, "unknown-group")
    back = await service.put_group("shop")
    assert back.status_code == 201
    assert back.json()["check_secret"]
    shown = await client.get(f"/v1/half-messages/{rolled_back}")
    assert shown.json()["producer_group"] == "shop"


async def test_a_paused_group_goes_on_preparing_and_ending(service: Service, pool: Pool) -> None:
    client, at = service.client, f"{GROUPS}/billing"
    message_id = await service.prepared_id()
    half = f"{HALVES}/{message_id}"
    assert (await client.get(half)).json()["next_check_at"] is not None
    asked = {"reason": "deploy", "operator": "Ada"}
    paused = (await client.post(f"{at}/pause", json=asked)).json()
    shown = [paused[name] for name in ("paused", "pause_reason", "paused_by")]
    assert shown == [True, "deploy", "Ada"]
    assert (await client.get(half)).json()["next_check_at"] is None
    unasked = (await client.get(GROUPS, params={"unasked": "true"})).json()
    assert [each["producer_group"] for each in unasked["data"]] == ["billing"]
    doctor = (await client.get("/v1/doctor")).json()["data"]
    [found] = [each for each in doctor if each["check"] == "paused groups"]
    assert (found["verdict"], "by Ada: deploy" in found["detail"]) == ("warning", True)
    assert found["command"] == "outbox group resume billing --reason TEXT"
    assert (await service.end(message_id, "COMMIT")).status_code == 200
    resumed = await client.post(f"{at}/resume", json={"reason": "done"})
    left = [resumed.json()[name] for name in ("paused", "pause_reason", "paused_at", "paused_by")]
    assert left == [False, None, None, None]
    assert (await client.get(GROUPS, params={"unasked": "true"})).json()["data"] == []
    actions = await select(
        pool, "SELECT action FROM outbox.audit_log WHERE action ~ '^group' ORDER BY id"
    )
    assert [row[0] for row in actions] == ["group.put", "group.pause", "group.resume"]


async def test_a_rotated_secret_signs_beside_the_old_one(bare_service: Service, pool: Pool) -> None:
    service, at = bare_service, f"{GROUPS}/billing/rotate-secret"
    old = (await service.put_group()).json()["check_secret"]
    first = await service.client.post(at, json={"overlap_seconds": 60})
    assert first.status_code == 200
    assert first.json()["previous_expires_at"].endswith("Z")
    new = first.json()["check_secret"]
    groups = PostgresProducerGroups(pool, key_ring(None, insecure=True))
    assert (await groups.with_secrets("billing"))[0].secrets == (new, old)
    await select(
        pool,
        "UPDATE outbox.producer_group SET previous_expire_at = ARRAY[clock_timestamp()]"
        " WHERE name = 'billing' RETURNING 1",
    )
    assert (await groups.with_secrets("billing"))[0].secrets == (new,)
    for body in ({"overlap_seconds": 604801}, {"overlap_seconds": -1}, {"x": 1}):
        assert (await service.client.post(at, json=body)).status_code == 422


async def test_a_group_shows_its_breaker_and_a_change_or_resume_closes_it(
    bare_service: Service, pool: Pool
) -> None:
    client = bare_service.client
    await bare_service.put_group("shop")
    [(group,)] = await select(pool, "SELECT id FROM outbox.producer_group")
    opened = (
        "INSERT INTO outbox.check_breaker (producer_group_id, wait_seconds, probe_at)"
        f" VALUES ({group}, 60, clock_timestamp() + interval '1 minute') RETURNING wait_seconds"
    )
    assert (await client.get(AT)).json()["breaker"] == "closed"
    await select(pool, opened)
    assert (await client.get(AT)).json()["breaker"] == "open"
    body = {"check_url": CHECK_URL, "check_max": 3}
    changed = await client.put(AT, json=body, headers={"If-Match": "*"})
    assert changed.json()["breaker"] == "closed"
    await select(pool, opened)
    resumed = await client.post(f"{AT}/resume", json={"reason": "repaired"})
    assert resumed.json()["breaker"] == "closed"
