"""Refusals before any rule of a message: syntax, size, media type, route, end."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from outbox.postgres.sessions.connections import Pool
from tests.integration.api.fixtures_rows import stored
from tests.integration.api.fixtures_service import GROUPS, HALVES, Service, prepare_body

pytestmark = pytest.mark.postgres

JSON = {"content-type": "application/json"}
UNKNOWN = "00000000-0001-8001-8000-000000000000"
GOOD = json.dumps(prepare_body()).encode()
SEVERAL = prepare_body(
    topic=..., value=..., messages=[{"topic": "invoices.issued", "value": "{}"}] * 100
)


NOT_JSON = (b"", b"{", b"{]", b"\xff" + GOOD)


async def test_a_body_that_is_not_json_is_malformed(
    service: Service, pool: Pool, subtests: pytest.Subtests
) -> None:
    for path in ("", "/batch", "/end-batch", f"/{UNKNOWN}/end"):
        for body in NOT_JSON:
            with subtests.test(path=path, body=body[:20]):
                answer = await service.client.post(HALVES + path, content=body, headers=JSON)
                assert (answer.status_code, answer.json()["code"]) == (400, "malformed-json")
    assert await stored(pool) == (0, 0, 0, 0)


MEDIA_TYPES: tuple[tuple[dict[str, str], int], ...] = (
    ({}, 415),
    ({"content-type": "text/plain"}, 415),
    ({"content-type": "application/json-seq"}, 415),
    ({"content-type": "application/json; charset=latin-1"}, 415),
    ({"content-type": "application/json", "content-encoding": "gzip"}, 415),
    ({"content-type": "application/json; charset=utf-8"}, 201),
    ({"content-type": 'application/json;\tCharset="UTF8";'}, 201),
    ({"content-type": "Application/JSON"}, 201),
)


async def test_only_json_in_utf_8_is_accepted(service: Service, subtests: pytest.Subtests) -> None:
    for headers, status in MEDIA_TYPES:
        with subtests.test(str(headers)):
            answer = await service.client.post(HALVES, content=GOOD, headers=headers)
            assert answer.status_code == status, answer.text
            if status == 415:
                assert answer.json()["code"] == "unsupported-media-type"


async def test_a_byte_order_mark_and_an_integer_with_a_fraction_are_read_as_they_are_meant(
    service: Service,
) -> None:
    """Windows programs write the mark, and languages with one kind of number 60.0."""
    item = GOOD[:-1] + b', "partition": 0.0, "check_immunity_seconds": 60.0}'
    group = b'{"check_url": "https://shop.example/check", "check_max": 3.0}'
    asked = (
        ("POST", HALVES, item, 201),
        ("POST", f"{HALVES}/batch", b'{"items": [' + item + b"]}", 207),
        ("PUT", f"{GROUPS}/shop", group, 201),
    )
    for method, path, body, status in asked:
        content = b"\xef\xbb\xbf" + body
        answer = await service.client.request(method, path, content=content, headers=JSON)
        assert answer.status_code == status, answer.text
        if status == 207:
            assert answer.json()["items"][0]["status"] == 201
    fraction = GOOD[:-1] + b', "check_immunity_seconds": 60.5}'
    refused = await service.client.post(HALVES, content=fraction, headers=JSON)
    assert refused.json()["errors"][0]["pointer"] == "/check_immunity_seconds"


async def test_a_body_over_its_limit_is_refused_declared_or_streamed(
    service: Service, pool: Pool
) -> None:
    async def streamed() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b" " * 65_536

    big = b" " * 1_048_577
    for content in (big, streamed()):
        answer = await service.client.post(HALVES, content=content, headers=JSON)
        assert (answer.status_code, answer.json()["code"]) == (413, "payload-too-large")
    batch = await service.client.post(f"{HALVES}/batch", content=b" " * 8_388_609, headers=JSON)
    assert batch.status_code == 413
    cold = await service.client.put(f"{GROUPS}/x", content=big, headers=JSON)
    assert cold.status_code == 413
    assert await stored(pool) == (0, 0, 0, 0)


@pytest.mark.parametrize(
    ("items", "status", "slug", "pointer"),
    [
        ([], 422, "invalid-request", "/items"),
        ({}, 422, "invalid-request", "/items"),
        ([prepare_body()] * 1001, 413, "batch-too-large", None),
        ([SEVERAL] * 11, 413, "batch-too-large", None),
    ],
    ids=["empty", "object", "1001", "1100"],
)
async def test_a_batch_has_1_to_1000_items(
    service: Service, pool: Pool, items: object, status: int, slug: str, pointer: str | None
) -> None:
    answer = await service.client.post(f"{HALVES}/batch", json={"items": items})
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (status, slug)
    assert [each["pointer"] for each in problem.get("errors", [])] == ([pointer] if pointer else [])
    assert await stored(pool) == (0, 0, 0, 0)


REFUSED = (
    ("GET", "/nothing", 404, "not-found"),
    ("GET", "/v1/half-messages/", 404, "not-found"),
    ("PUT", HALVES, 405, "method-not-allowed"),
    ("DELETE", f"{HALVES}/{UNKNOWN}", 405, "method-not-allowed"),
    ("GET", f"{HALVES}/{UNKNOWN}/end", 405, "method-not-allowed"),
    ("GET", f"{HALVES}/{UNKNOWN}", 404, "message-not-found"),
    ("GET", f"{HALVES}/not-an-id", 404, "message-not-found"),
    ("GET", f"{GROUPS}/nobody", 404, "unknown-group"),
    ("GET", f"{HALVES}?limit=0", 422, "invalid-request"),
    ("GET", f"{HALVES}?state=LOST", 422, "invalid-request"),
    ("GET", f"{HALVES}?colour=red", 422, "invalid-request"),
    ("GET", f"{HALVES}?state=PREPARED&state=PARKED", 422, "invalid-request"),
    ("GET", f"{HALVES}?prepared_from=2026-01-01T00:00:00", 422, "invalid-request"),
    ("GET", f"{HALVES}?transaction_id=%00", 422, "invalid-request"),
    ("GET", f"{HALVES}?cursor=nonsense", 400, "cursor-invalid"),
    ("GET", "/livez?x=1", 422, "invalid-request"),
)


async def test_every_refusal_is_a_problem_document(
    service: Service, subtests: pytest.Subtests
) -> None:
    for method, path, status, slug in REFUSED:
        with subtests.test(path, method=method):
            answer = await service.client.request(method, path)
            problem = answer.json()
            assert (answer.status_code, problem["code"]) == (status, slug), answer.text
            assert answer.headers["content-type"] == "application/problem+json"
            assert problem["request_id"] == answer.headers["x-request-id"]
            assert (problem["type"], problem["status"]) == (f"/problems/{slug}", status)


async def test_a_hot_route_takes_no_query_parameter(service: Service, pool: Pool) -> None:
    answer = await service.client.post(f"{HALVES}?wait=1", json=prepare_body())
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request")
    assert await stored(pool) == (0, 0, 0, 0)


async def test_a_request_id_is_kept_if_it_is_well_formed(service: Service) -> None:
    cases = (("abc-1._", True), ("a" * 64, True), ("a" * 65, False), ("a b", False), ("", False))
    for given, kept in cases:
        answer = await service.client.get("/livez", headers={"x-request-id": given})
        assert (answer.headers["x-request-id"] == given) is kept
        assert answer.headers["x-request-id"]


BAD_ENDS: tuple[tuple[dict[str, object], str], ...] = (
    ({}, "/decision"),
    ({"decision": "commit"}, "/decision"),
    ({"decision": "MAYBE"}, "/decision"),
    ({"decision": None}, "/decision"),
    ({"decision": "COMMIT", "reason": "r" * 501}, "/reason"),
    ({"decision": "COMMIT", "reason": "a\x00"}, "/reason"),
    ({"decision": "COMMIT", "reason": 1}, "/reason"),
    ({"decision": "COMMIT", "operator": "me"}, "/operator"),
    ({"decision": "COMMIT", "transaction_id": "a\x00"}, "/transaction_id"),
    ({"decision": "COMMIT", "transaction_id": ""}, "/transaction_id"),
)


async def test_an_end_that_breaks_a_rule_is_refused_and_decides_nothing(
    service: Service, pool: Pool, subtests: pytest.Subtests
) -> None:
    message_id = await service.prepared_id()
    for body, pointer in BAD_ENDS:
        with subtests.test(str(body)[:60]):
            answer = await service.client.post(f"{HALVES}/{message_id}/end", json=body)
            problem = answer.json()
            assert (answer.status_code, problem["code"]) == (422, "invalid-request"), answer.text
            assert [error["pointer"] for error in problem["errors"]] == [pointer]
    assert await stored(pool) == (1, 0, 0, 0)


async def test_a_preference_that_is_not_understood_is_ignored_and_the_decision_is_kept(
    service: Service,
) -> None:
    """As RFC 7240 says; a longer wait than the longest is shortened to it."""
    for asked, applied in (
        *((f"wait={wait}", None) for wait in ("-1", "1.5", "abc", "")),
        ("wait", None),
        ('return=minimal; foo="a, wait=5"', None),
        ('return=minimal, Wait = "0" ; x=1, wait=9', "wait=0"),
        ("wait=00", "wait=0"),
    ):
        answer = await service.end(await service.prepared_id(), "COMMIT", headers={"Prefer": asked})
        assert answer.status_code == 200, asked
        assert answer.headers.get("preference-applied") == applied, asked
    ended = {"items": [{"message_id": await service.prepared_id(), "decision": "ROLLBACK"}]}
    batch = await service.client.post(
        f"{HALVES}/end-batch", json=ended, headers={"Prefer": "wait=999999999999"}
    )
    assert batch.json()["items"][0]["result"]["state"] == "ROLLED_BACK"
    assert batch.headers.get("preference-applied") == "wait=30"
