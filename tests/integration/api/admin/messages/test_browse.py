"""Lists and single messages: newest first, filtered, page by page, never a total."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from outbox.postgres.sessions.connections import Pool
from tests.integration.api.fixtures_rows import CHECKED, select
from tests.integration.api.fixtures_service import HALVES, Service

pytestmark = pytest.mark.postgres


async def listed(service: Service, **query: Any) -> list[str]:
    """Return the ids of one page."""
    answer = await service.client.get(HALVES, params=query)
    assert answer.status_code == 200, answer.text
    return [message["message_id"] for message in answer.json()["data"]]


async def test_pages_are_newest_first_and_miss_nothing(service: Service) -> None:
    made = [await service.prepared_id(value=str(n)) for n in range(7)]
    seen: list[str] = []
    url = str(httpx2.URL(HALVES, params={"limit": "3"}))
    while url:
        answer = await service.client.get(url)
        page = answer.json()
        assert set(page) == {"data", "next_cursor", "has_more", "searched_back_to"}
        seen += [message["message_id"] for message in page["data"]]
        url = answer.links["next"]["url"] if page["has_more"] else ""
    assert seen == made[::-1]


async def test_a_message_must_match_every_filter(service: Service, pool: Pool) -> None:
    await service.put_group("shop")
    service.topics.counts["orders"] = 1
    plain = await service.prepared_id()
    rich = await service.prepared_id(
        producer_group="shop", topic="orders", key="k-1", tags=["red", "blue"], transaction_id="t-1"
    )
    await select(pool, CHECKED + " WHERE transaction_id IS NOT NULL", 1, 1, "bad_verdict")
    await service.end(rich, "COMMIT")
    for query in (
        {"producer_group": "shop"},
        {"topic": "orders"},
        {"key": "k-1"},
        {"tag": "blue"},
        {"transaction_id": "t-1"},
        {"decided_by": "producer"},
        {"min_checks": 1},
        {"last_outcome": "bad_verdict"},
        {"producer_group": "shop", "tag": "red", "state": "COMMITTED"},
    ):
        assert await listed(service, **query) == [rich], query
    since = await listed(service, prepared_from="2020-01-01T00:00:00Z")
    assert since[:2] == [rich, plain]
    assert await listed(service, prepared_to="2020-01-01T00:00:00+02:00") == []
    for query in ({"producer_group": "none"}, {"tag": "green"}, {"decided_by": "check"}):
        assert await listed(service, **query) == []


async def test_an_unchanged_message_is_not_sent_again(service: Service) -> None:
    at = f"{HALVES}/{await service.prepared_id()}"
    first = await service.client.get(at)
    tag = first.headers["etag"]
    for header in (tag, f'"other", {tag}', f"W/{tag}", "*"):
        again = await service.client.get(at, headers={"If-None-Match": header})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == tag
    await service.end(at.rsplit("/", 1)[1], "COMMIT")
    changed = await service.client.get(at, headers={"If-None-Match": tag})
    assert changed.status_code == 200


HEADERS = {"tenant": "nörd", "schema": {"base64": "Af8="}, "none": None}


async def test_the_payload_comes_back_byte_by_byte(service: Service) -> None:
    binary = await service.prepare(
        value=..., value_base64="AP8=", key_base64="/w==", headers=HEADERS
    )
    shown = await service.client.get(binary.headers["location"], params={"include": "payload"})
    body = shown.json()
    assert (body["value_base64"], body["key_base64"]) == ("AP8=", "/w==")
    assert body["headers"] == HEADERS
    tombstone = await service.prepare(value=None)
    shown = await service.client.get(tombstone.headers["location"], params={"include": "payload"})
    assert (shown.json()["value"], shown.json()["key"]) == (None, None)
    assert shown.json()["value_bytes"] is None
    wrong = await service.client.get(tombstone.headers["location"], params={"include": "all"})
    assert wrong.status_code == 422
