"""Records that Kafka refuses, over REST: list, publish again, give up."""

from __future__ import annotations

from typing import LiteralString

import pytest

from outbox.postgres.sessions.connections import Pool
from tests.integration.api.fixtures_held import hold
from tests.integration.api.fixtures_rows import select
from tests.integration.api.fixtures_service import TOPIC, Service

pytestmark = pytest.mark.postgres

HELD = "/v1/held-records"
WHO = {"operator": "ann", "reason": "the limit was raised"}
AUDITED: LiteralString = (
    "SELECT action, target, operator, reason FROM outbox.audit_log"
    " WHERE action IN ('held.release', 'held.drop')"
    " AND operator = 'ann' ORDER BY id"
)


async def held_id(service: Service, pool: Pool, key: str) -> str:
    """Return the id of a message that Kafka refuses."""
    message_id = await service.prepared_id(key=key)
    await service.end(message_id, "COMMIT")
    await hold(pool, message_id)
    return message_id


async def listed(service: Service, **query: str | bool) -> list[str]:
    """Return the ids of a list of this topic."""
    answer = await service.client.get(HELD, params={"topic": TOPIC, **query})
    assert answer.status_code == 200, answer.text
    return [each["message_id"] for each in answer.json()["data"]]


async def test_held_records_are_listed_in_pages_with_their_error(
    service: Service, pool: Pool
) -> None:
    ids = [await held_id(service, pool, key=f"k-{n}") for n in range(3)]
    page = (await service.client.get(HELD, params={"limit": 2, "topic": TOPIC})).json()
    assert [each["message_id"] for each in page["data"]] == ids[:2]
    assert {each["publish_error"] for each in page["data"]} == {"MSG_SIZE_TOO_LARGE"}
    assert page["has_more"]
    assert await listed(service, cursor=page["next_cursor"]) == ids[2:]
    assert await listed(service, topic="another") == []


async def test_a_record_is_published_again_or_given_up_with_a_reason(
    service: Service, pool: Pool
) -> None:
    again, given_up = [await held_id(service, pool, key=f"k-{n}") for n in range(2)]
    answer = await service.client.post(f"{HELD}/{again}/release", json=WHO)
    assert answer.json() == {"message_id": again, "released": True, "dropped": False}
    due = await select(
        pool, "SELECT count(*) FROM outbox.held_record WHERE next_attempt_at <= clock_timestamp()"
    )
    assert due[0][0] >= 1
    answer = await service.client.post(f"{HELD}/{given_up}/drop", json=WHO)
    assert answer.json() == {"message_id": given_up, "released": False, "dropped": True}
    assert await listed(service) == [again]
    assert given_up in await listed(service, dropped=True)
    reason = WHO["reason"]
    for message_id, what in ((again, "release"), (given_up, "drop")):
        history = (await service.client.get(f"/v1/half-messages/{message_id}/history")).json()
        last = history["events"][-1]
        assert (last["type"], last["operator"], last["reason"]) == (what, "ann", reason)
    assert await select(pool, AUDITED) == [
        ("held.release", again, "ann", reason),
        ("held.drop", given_up, "ann", reason),
    ]
