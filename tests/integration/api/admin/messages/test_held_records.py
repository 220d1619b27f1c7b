"""Records that Kafka refuses, over REST: list, publish again, give up."""

from __future__ import annotations

import pytest

from outbox.postgres.sessions.connections import Pool
from tests.integration.api.fixtures_held import hold
from tests.integration.api.fixtures_service import TOPIC, Service

pytestmark = pytest.mark.postgres

HELD = "/v1/held-records"


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
