"""Several messages under one decision: one prepare, one end, and one message that is ended."""

from __future__ import annotations

from typing import Any

import pytest

from outbox.postgres.sessions.connections import Pool
from tests.integration.api.fixtures_rows import select, stored
from tests.integration.api.fixtures_service import HALVES, TOPIC, Service, prepare_body

pytestmark = pytest.mark.postgres


def several(*values: str, **fields: Any) -> dict[str, Any]:
    """Return a prepare of several messages, each with its own key."""
    messages = [{"topic": TOPIC, "key": value, "value": value} for value in values]
    return prepare_body(topic=..., value=..., messages=messages, **fields)


async def test_one_end_commits_all_messages_and_each_shows_the_others(service: Service) -> None:
    body = several("a", "b", "c", transaction_id="order-1", check_immunity_seconds=60)
    answer = await service.client.post(HALVES, json=body)
    assert answer.status_code == 201, answer.text
    leader, *followers = message_ids = answer.json()["message_ids"]
    assert answer.json()["message_id"] == leader
    body["messages"][2]["value"] = "x"
    other = await service.client.post(HALVES, json=body)
    assert other.json()["errors"][0]["pointer"] == "/messages/2/value"
    shown = (await service.client.get(f"{HALVES}/{followers[1]}")).json()
    assert (shown["state"], shown["message_ids"]) == ("PREPARED", message_ids)
    assert shown["next_check_at"] == answer.json()["next_check_at"]
    listed = (await service.client.get(f"{HALVES}?state=PREPARED")).json()["data"]
    assert [each["message_id"] for each in listed] == [leader]
    assert (await service.end(leader, "COMMIT")).json()["state"] == "COMMITTED"
    for message_id in message_ids:
        shown = (await service.client.get(f"{HALVES}/{message_id}")).json()
        assert (shown["state"], shown["message_ids"]) == ("COMMITTED", message_ids)
        history = (await service.client.get(f"{HALVES}/{message_id}/history")).json()
        assert [event["type"] for event in history["events"]] == ["prepared", "decided"]


async def test_whoever_decides_or_checks_a_follower_is_told_its_leader(
    service: Service, pool: Pool
) -> None:
    items = [several("a", "b", transaction_id="t-1"), prepare_body(transaction_id="t-2")]
    first = await service.client.post(f"{HALVES}/batch", json={"items": items[:1]})
    leader, follower = first.json()["items"][0]["result"]["message_ids"]
    both = (await service.client.post(f"{HALVES}/batch", json={"items": items})).json()["items"]
    assert ["replayed" in item for item in (*first.json()["items"], *both)] == [False, True, False]
    assert ["message_ids" in item["result"] for item in both] == [True, False]
    operator = {"operator": "night shift", "reason": "asked by the producer"}
    for action, body in (
        ("end", {"decision": "COMMIT"}),
        ("end", {"decision": "UNKNOWN"}),
        ("force-end", {"decision": "ROLLBACK", **operator}),
        ("recheck", operator),
    ):
        refused = await service.client.post(f"{HALVES}/{follower}/{action}", json=body)
        assert refused.status_code == 409, refused.text
        assert (refused.json()["code"], refused.json()["leader_id"]) == ("follows-another", leader)
    assert (await stored(pool))[1] == 0
    assert not await select(pool, "SELECT 1 FROM outbox.audit_log WHERE target = %s", follower)
