"""Every rule of a prepare: its status, slug and pointer, and nothing is stored."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import pytest

from outbox.postgres.sessions.connections import Pool
from tests.integration.api.fixtures_rows import stored
from tests.integration.api.fixtures_service import HALVES, Service, prepare_body

pytestmark = pytest.mark.postgres

JSON = {"content-type": "application/json"}
INVALID = "invalid-request"
LONG_KEY = "k" * 8193
Case = tuple[dict[str, Any], int, str, str]


def several(**fields: Any) -> dict[str, Any]:
    """Return the members of a prepare of three messages, of which the last has these fields."""
    good = {"topic": "invoices.issued", "value": "{}"}
    return {"topic": ..., "value": ..., "messages": [good, good, {**good, **fields}]}


CASES: list[Case] = [
    ({"producer_group": ...}, 422, INVALID, "/producer_group"),
    ({"producer_group": "-billing"}, 422, INVALID, "/producer_group"),
    ({"producer_group": "billing\n"}, 422, INVALID, "/producer_group"),
    ({"producer_group": "nobody"}, 404, "unknown-group", "/producer_group"),
    ({"topic": ...}, 422, INVALID, "/topic"),
    ({"topic": ".."}, 422, INVALID, "/topic"),
    ({"topic": "a/b"}, 422, INVALID, "/topic"),
    ({"topic": "t" * 250}, 422, INVALID, "/topic"),
    ({"topic": "__consumer_offsets"}, 422, "topic-reserved", "/topic"),
    ({"topic": "outbox.progress"}, 422, "topic-reserved", "/topic"),
    ({"topic": "no.such.topic"}, 422, "unknown-topic", "/topic"),
    ({"value": ...}, 422, INVALID, "/value"),
    ({"value": "a", "value_base64": "YQ=="}, 422, INVALID, "/value"),
    ({"value": {"a": 1}}, 422, INVALID, "/value"),
    ({"value": ..., "value_base64": "YQ"}, 422, INVALID, "/value_base64"),
    ({"value": ..., "value_base64": "YR=="}, 422, INVALID, "/value_base64"),
    ({"key": "a", "key_base64": "YQ=="}, 422, INVALID, "/key_base64"),
    ({"key": LONG_KEY}, 422, INVALID, "/key"),
    ({"key_base64": base64.b64encode(LONG_KEY.encode()).decode()}, 422, INVALID, "/key_base64"),
    ({"key_base64": "YQ"}, 422, INVALID, "/key_base64"),
    ({"partition": -1}, 422, INVALID, "/partition"),
    ({"partition": "1"}, 422, INVALID, "/partition"),
    ({"partition": 3}, 422, "partition-out-of-range", "/partition"),
    ({"headers": {"a": 1}}, 422, INVALID, "/headers"),
    ({"headers": {"a b": "x"}}, 422, INVALID, "/headers"),
    ({"headers": {"a": "x\r\ny"}}, 422, INVALID, "/headers/a"),
    ({"headers": {"a": {"base64": "AP8"}}}, 422, INVALID, "/headers/a"),
    ({"headers": {"a": {"bytes": "AP8="}}}, 422, INVALID, "/headers"),
    ({"headers": {"a": "v" * 4097}}, 422, INVALID, "/headers/a"),
    ({"headers": {f"h{n}": "v" for n in range(65)}}, 422, INVALID, "/headers"),
    ({"headers": {f"h{n}": "v" * 4096 for n in range(8)}}, 422, INVALID, "/headers"),
    ({"headers": {"outbox_x": "v"}}, 422, "header-reserved", "/headers/outbox_x"),
    ({"headers": {"webhook-id": "v"}}, 422, "header-reserved", "/headers/webhook-id"),
    ({"headers": {"traceparent": "v"}}, 422, "header-reserved", "/headers/traceparent"),
    ({"headers": {"DELAY": "3"}}, 422, "delay-not-supported", "/headers/DELAY"),
    (
        {"headers": {"TIMER_DELIVER_MS": "3"}},
        422,
        "delay-not-supported",
        "/headers/TIMER_DELIVER_MS",
    ),
    ({"deliver_after": 5}, 422, "delay-not-supported", "/deliver_after"),
    ({"transaction_id": "t" * 129}, 422, INVALID, "/transaction_id"),
    ({"transaction_id": "a\x00"}, 422, INVALID, "/transaction_id"),
    ({"check_immunity_seconds": 0}, 422, INVALID, "/check_immunity_seconds"),
    ({"check_immunity_seconds": 3601}, 422, INVALID, "/check_immunity_seconds"),
    ({"content_type": "json"}, 422, INVALID, "/content_type"),
    ({"content_type": "text/plain\r\nx: y"}, 422, INVALID, "/content_type"),
    ({"tags": [""]}, 422, INVALID, "/tags/0"),
    ({"tags": ["a", "b\x00"]}, 422, INVALID, "/tags/1"),
    ({"tags": ["t"] * 17}, 422, INVALID, "/tags"),
    ({"colour": "red"}, 422, INVALID, "/colour"),
    (several() | {"messages": [{"topic": "t", "value": ""}]}, 422, INVALID, "/messages"),
    (several() | {"topic": "invoices.issued"}, 422, INVALID, "/topic"),
    (several() | {"producer_group": "nobody"}, 404, "unknown-group", "/producer_group"),
    (several(transaction_id="t"), 422, INVALID, "/messages/2/transaction_id"),
    (several(topic=None), 422, INVALID, "/messages/2/topic"),
    (several(topic="no.such.topic"), 422, "unknown-topic", "/messages/2/topic"),
    (several(partition=3), 422, "partition-out-of-range", "/messages/2/partition"),
    (several(headers={"DELAY": "3"}), 422, "delay-not-supported", "/messages/2/headers/DELAY"),
    ({"value": "v" * 1_000_001}, 413, "payload-too-large", ""),
    ({"value": "v" * 999_999, "headers": {"a": "b"}}, 413, "payload-too-large", ""),
]


async def test_a_prepare_that_breaks_a_rule_is_refused_and_stores_nothing(
    service: Service, pool: Pool, subtests: pytest.Subtests
) -> None:
    for fields, status, slug, pointer in CASES:
        with subtests.test(str(fields)[:60]):
            answer = await service.prepare(**fields)
            problem = answer.json()
            assert (answer.status_code, problem["code"]) == (status, slug), answer.text
            assert [error["pointer"] for error in problem["errors"]] == [pointer]
            assert problem["detail"].startswith(pointer[1:].replace("/", "."))
            assert OF_PYTHON.findall(problem["detail"]) == []
            assert answer.headers["content-type"] == "application/problem+json"
    assert await stored(pool) == (0, 0, 0, 0)


OF_PYTHON = re.compile(r"`|\b(?:str|int|float|bool|dict|dictionary|tuple|got|expected)\b", re.I)


async def test_an_item_of_a_batch_gets_the_answer_of_the_single_call(
    service: Service, pool: Pool, subtests: pytest.Subtests
) -> None:
    cases = [case for case in CASES if case[2] != "payload-too-large"]
    for fields, status, slug, pointer in cases:
        with subtests.test(str(fields)[:60]):
            items = [prepare_body(**fields), prepare_body()]
            answer = await service.client.post(f"{HALVES}/batch", json={"items": items})
            assert answer.status_code == 207, answer.text
            first, second = answer.json()["items"]
            assert (first["index"], first["status"], first["problem"]["code"]) == (0, status, slug)
            assert [error["pointer"] for error in first["problem"]["errors"]] == [pointer]
            assert "result" not in first
            assert (second["index"], second["status"]) == (1, 201)
    assert (await stored(pool))[0] == len(cases)


REPEATED = (
    *(b'{"b": "1", "a": "1", "a": "2"}', b'{"\\u0061": "\\"", "a": ""}'),
    *(b'{"a": "1", "a": null, "b": null}', b'{"a": null, "a": null}'),
)
"""Objects in which the name `a` is twice; no dictionary holds them."""


async def test_a_header_that_is_named_twice_is_refused(service: Service, pool: Pool) -> None:
    for headers in REPEATED:
        body = json.dumps(prepare_body(headers=...)).encode()[:-1] + b', "headers": %s}' % headers
        answer = await service.client.post(HALVES, content=body, headers=JSON)
        assert (answer.status_code, answer.json()["code"]) == (422, INVALID)
        error = {"pointer": "/headers/a", "message": "is present twice"}
        assert answer.json()["errors"] == [error]
    assert await stored(pool) == (0, 0, 0, 0)


OPTIONAL = (
    *("key", "key_base64", "partition", "headers", "transaction_id", "check_immunity_seconds"),
    *("content_type", "tags", "deliver_after"),
)
"""Serialisers send null for each member that is not set."""
ALLOWED: list[dict[str, Any]] = [
    {"value": None},
    {"value": ""},
    {"value": "\U0001f600 ü"},
    {"value": ..., "value_base64": "AP8="},
    {"key": ""},
    {"key": "k" * 8192},
    {"key_base64": "/w=="},
    {"partition": 2},
    {"headers": {f"h{n}": "v" for n in range(64)}},
    {"headers": {"ce_id": "1", "a": ""}},
    {"headers": {"a": '"\\', "b": "ü"}},
    dict.fromkeys((*OPTIONAL, "value_base64")),
    {**dict.fromkeys((*OPTIONAL, "value")), "value_base64": "AP8="},
    {"headers": {"a": "v" * 4096}},
    {"transaction_id": "ü" * 128},
    {"check_immunity_seconds": 3600},
    {"content_type": "application/vnd.x+json; charset=utf-8"},
    {"tags": ["t" * 64] * 16},
    {"value": "v" * 1_000_000},
]


async def test_every_allowed_prepare_is_stored_unchanged(
    service: Service, subtests: pytest.Subtests
) -> None:
    for fields in ALLOWED:
        with subtests.test(str(fields)[:60]):
            await store_and_read_back(service, fields)


async def store_and_read_back(service: Service, fields: dict[str, Any]) -> None:
    answer = await service.prepare(**fields)
    assert answer.status_code == 201, answer.text
    shown = await service.client.get(answer.headers["location"], params={"include": "payload"})
    for name, sent in fields.items():
        if sent not in (None, ..., {}) and name != "check_immunity_seconds":
            assert shown_of(shown.json(), name) == sent, name


def shown_of(shown: dict[str, Any], name: str) -> Any:
    """Return a field of an answer, where bytes that are text are text, even if sent as Base64."""
    plain = name.removesuffix("_base64")
    if name != plain and isinstance(shown.get(plain), str):
        return base64.b64encode(shown[plain].encode()).decode()
    return shown[name]


async def test_a_wrong_idempotency_key_is_refused(
    service: Service, pool: Pool, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[bytes, dict[str, str], str]] = [
        (b'"t-1"', {"transaction_id": "t-2"}, "idempotency-key-mismatch"),
        (b"", {}, INVALID),
        (b'""', {}, INVALID),
        (b"k" * 129, {}, INVALID),
        (b"a\tb", {}, INVALID),
        ("é".encode(), {"transaction_id": "é"}, INVALID),
        ("é".encode("latin-1"), {}, INVALID),
    ]
    for key, fields, slug in cases:
        with subtests.test(str(key)):
            headers = {b"idempotency-key": key}
            answer = await service.client.post(HALVES, json=prepare_body(**fields), headers=headers)
            assert (answer.status_code, answer.json().get("code")) == (422, slug)
    assert await stored(pool) == (0, 0, 0, 0)


@pytest.mark.parametrize("key", ['"t-1"', "t-1"])
async def test_an_idempotency_key_is_an_alias_of_the_transaction_id(
    service: Service, pool: Pool, key: str
) -> None:
    first = await service.prepare(transaction_id="t-1")
    again = await service.client.post(HALVES, json=prepare_body(), headers={"Idempotency-Key": key})
    assert again.status_code == 201
    assert again.headers["idempotency-replayed"] == "true"
    assert again.json()["message_id"] == first.json()["message_id"]
    assert (await stored(pool))[0] == 1


async def test_a_topic_that_the_group_may_not_write_is_refused(
    service: Service, pool: Pool
) -> None:
    service.topics.counts.update({"orders.new": 1, "orders.old": 1, "other": 1})
    await service.put_group("shop", topics=["orders.*", "exact"])
    for topic, status in (("orders.new", 201), ("other", 403), ("exact.not", 403)):
        answer = await service.prepare(producer_group="shop", topic=topic)
        assert answer.status_code == status, answer.text
        if status == 403:
            assert answer.json().get("code") == "topic-not-allowed"
    assert (await stored(pool))[0] == 1


async def test_a_message_for_an_unknown_topic_is_stored_while_kafka_is_down(
    service: Service,
) -> None:
    service.topics.unavailable = True
    assert (await service.prepare(topic="no.such.topic")).status_code in (201, 422)
    assert (await service.prepare(topic="no.such.topic")).status_code == 201
