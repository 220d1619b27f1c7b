"""The audit log over REST: filters, pages, and what a bound key sees."""

from __future__ import annotations

import pytest

from outbox.access import Scope
from outbox.postgres.sessions.connections import Pool
from tests.integration.api.fixtures_keys import guarded, token
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
        ({"message_id": "nothing"}, []),
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


async def test_pages_go_on_where_the_last_one_ended(service: Service) -> None:
    ids = [await service.prepared_id() for _ in range(3)]
    for message_id in ids:
        await recheck(service, message_id, "Ada")
    asked: dict[str, str | int] = {"operator": "Ada", "limit": 2}
    first = (await service.client.get(AUDIT, params=asked)).json()
    assert [each["target"] for each in first["data"]] == [ids[2], ids[1]]
    assert await targets(service, **asked, cursor=first["next_cursor"]) == [ids[0]]
    bad = await service.client.get(AUDIT, params={"cursor": "bad"})
    assert (bad.status_code, bad.json()["code"]) == (400, "cursor-invalid")


async def test_a_bound_key_sees_what_was_done_in_its_groups_alone(
    database_url: str, pool: Pool
) -> None:
    async with guarded(database_url) as service:
        service.client.headers.update(await token(pool, Scope.ADMIN))
        for group in ("mine", "theirs"):
            await service.put_group(group)
        message_id = await service.prepared_id(producer_group="mine")
        await recheck(service, message_id, "Ada")
        await recheck(service, await service.prepared_id(producer_group="theirs"), "Bob")
        service.client.headers.update(await token(pool, Scope.REPORTS_READ, groups=("mine",)))
        assert await targets(service) == [message_id, "mine"]
