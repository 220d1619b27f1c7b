"""Values at the edge: times, cursors and methods that are valid in form."""

from __future__ import annotations

from typing import Any

import pytest

from api.http.page_token import encode_page_token
from outbox.messages.message_id import parse_message_id
from outbox.postgres.sessions.connections import Pool
from tests.integration.api.admin.fixtures_bulk_actions import WHO
from tests.integration.api.fixtures_rows import CHECKED, PARK, select
from tests.integration.api.fixtures_service import HALVES, Service

pytestmark = pytest.mark.postgres

DAMAGE = "UPDATE outbox.half_message SET headers = '{x}' WHERE half_id = %s RETURNING half_id"
KEY = {"name": "n", "producer_groups": ["*"], "scopes": ["messages:read"]}


@pytest.mark.parametrize(
    "moment",
    ["9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00", "2001-01-01T00:00:00Z"],
)
async def test_a_key_that_never_was_or_never_ends_is_refused(service: Service, moment: str) -> None:
    answer = await service.client.post("/v1/api-keys", json={**KEY, "expires_at": moment})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request")
    assert answer.json()["errors"][0]["pointer"] == "/expires_at"


@pytest.mark.parametrize("name", ["prepared_from", "prepared_to"])
async def test_a_time_without_a_year_in_utc_is_refused(service: Service, name: str) -> None:
    for moment in ("9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00"):
        answer = await service.client.get(HALVES, params={name: moment})
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request")
    answer = await service.client.get(HALVES, params={name: "yesterday"})
    assert answer.json()["detail"] == "is not a time like 2026-09-21T14:13:26Z (RFC 3339)"
    last = {name: "9999-12-31T23:59:59Z"}
    assert (await service.client.get(HALVES, params=last)).status_code == 200


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("/v1/producer-groups", "a\x00b"),
        ("/v1/api-keys", "a\x00b"),
        (HALVES, str(1 << 63)),
        ("/v1/audit-log", str(1 << 63)),
        ("/v1/held-records", str(1 << 63)),
    ],
)
async def test_a_cursor_with_a_place_that_no_list_has_is_refused(
    service: Service, path: str, place: str
) -> None:
    answer = await service.client.get(path, params={"cursor": encode_page_token(place)})
    assert (answer.status_code, answer.json()["code"]) == (400, "cursor-invalid")


@pytest.mark.parametrize("path", ["/livez", "/version", "/metrics", "/docs", "/problems/not-found"])
async def test_a_public_page_answers_head_like_get(service: Service, path: str) -> None:
    answer, read = await service.client.head(path), await service.client.get(path)
    assert (answer.status_code, read.status_code) == (200, 200)
    assert answer.headers["content-type"] == read.headers["content-type"]
    refused = await service.client.post(path)
    assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD")


async def test_checks_before_a_recheck_of_a_parked_message_do_not_count(
    service: Service, pool: Pool
) -> None:
    message_id = await service.prepared_id(tags=["mine"])
    await select(pool, CHECKED, 7, 1, "unknown")
    await select(pool, PARK)
    asked: dict[str, Any] = {"tag": "mine", "min_checks": "1"}
    parked = (await service.client.get(HALVES, params={"state": "PARKED", **asked})).json()
    assert [each["check_count"] for each in parked["data"]] == [1]
    await service.client.post(f"{HALVES}/{message_id}/recheck", json=WHO)
    shown = (await service.client.get(f"{HALVES}/{message_id}")).json()
    assert (shown["state"], shown["check_count"]) == ("PREPARED", 0)
    found = (await service.client.get(HALVES, params={"state": "PREPARED", **asked})).json()
    assert found["data"] == []


async def test_the_last_check_is_found_by_its_status_and_a_missing_one_as_none(
    service: Service, pool: Pool
) -> None:
    checked = await service.prepared_id(tags=["mine"])
    await select(pool, CHECKED, 7, 1, "bad_verdict")
    unchecked = await service.prepared_id(tags=["mine"])
    for query, expected in (
        ({"last_http_status": "200"}, [checked]),
        ({"last_http_status": "500"}, []),
        ({"last_outcome": "none"}, [unchecked]),
        ({"last_outcome": "bad_verdict", "last_http_status": "200"}, [checked]),
    ):
        for state in ({}, {"state": "PREPARED"}):
            answer = await service.client.get(HALVES, params={"tag": "mine", **query, **state})
            assert [each["message_id"] for each in answer.json()["data"]] == expected, query
    for wrong in ("99", "600", "abc", "-1"):
        answer = await service.client.get(HALVES, params={"last_http_status": wrong})
        assert answer.status_code == 422


async def test_a_message_with_damaged_headers_is_shown_without_them(
    service: Service, pool: Pool
) -> None:
    message_id = await service.prepared_id(headers={"tenant": "a"}, key="k")
    await select(pool, DAMAGE, parse_message_id(message_id)[0])
    shown = await service.client.get(f"{HALVES}/{message_id}", params={"include": "payload"})
    assert shown.status_code == 200
    assert (shown.json()["headers"], shown.json()["key"]) == (None, "k")
    usual = await service.client.get(f"{HALVES}/{message_id}")
    assert usual.json()["state"] == "PREPARED"
