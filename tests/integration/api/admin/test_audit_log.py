"""The audit log over REST: filters, pages, and what a bound key sees."""

from __future__ import annotations

import pytest

from tests.integration.api.fixtures_service import TOPIC, Service

pytestmark = pytest.mark.postgres

AUDIT = "/v1/audit-log"


async def recheck(service: Service, message_id: str, operator: str, reason: str = "r") -> None:
    """Intervene in a message."""
    body = {"operator": operator, "reason": reason}
    answer = await service.client.post(f"/v1/half-messages/{message_id}/recheck", json=body)
    assert answer.status_code == 202, answer.text


async def targets(service: Service, **query: str | int) -> list[str]:
    """Return the targets of a list, the newest first."""
    answer = await service.client.get(AUDIT, params=query)
    assert answer.status_code == 200, answer.text
    return [each["target"] for each in answer.json()["data"]]


async def test_entries_are_found_by_the_filters_of_messages_and_by_who(service: Service) -> None:
    await service.put_group("other")
    mine = await service.prepared_id(transaction_id="t-1")
    theirs = await service.prepared_id(producer_group="other")
    await recheck(service, mine, "Ada", "the endpoint is back")
    await recheck(service, theirs, "Bob")
    await service.client.post("/v1/producer-groups/other/pause", json={"reason": "flooded"})
    cases: tuple[tuple[dict[str, str | int], list[str]], ...] = (
        ({"operator": "Ada"}, [mine]),
        ({"producer_group": "other", "action": "message.recheck"}, [theirs]),
        ({"producer_group": "other", "action": "group.pause"}, ["other"]),
        ({"transaction_id": "t-1"}, [mine]),
        ({"message_id": theirs}, [theirs]),
        ({"message_id": "0" * 36}, []),
        ({"topic": TOPIC, "operator": "Bob"}, [theirs]),
        ({"operator": "Ada", "at_to": "2001-01-01T00:00:00Z"}, []),
        ({"operator": "Ada", "at_from": "2001-01-01T00:00:00Z"}, [mine]),
    )
    for query, found in cases:
        assert await targets(service, **query) == found, query
    [entry] = (await service.client.get(AUDIT, params={"operator": "Ada"})).json()["data"]
    assert (entry["action"], entry["reason"]) == ("message.recheck", "the endpoint is back")
    assert entry["message_id"] == mine
    assert (await service.client.get(AUDIT, params={"who": "Ada"})).status_code == 422
