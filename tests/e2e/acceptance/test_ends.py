"""Acceptance: prepare and end, seen from REST and from the topic."""

from __future__ import annotations

import base64
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.e2e.fixtures_service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.postgres, pytest.mark.kafka]

NOBODY = "http://127.0.0.1:65533/check"
"""A check URL without a listener: such checks are not counted."""


@pytest.fixture
def group(service: Service) -> str:
    return service.group(NOBODY, transaction_timeout_seconds=600)


def counter(service: Service, line: str) -> float:
    """Return the value of one line of the API's metrics, 0 while it does not exist."""
    for text in service.http.get("/metrics").text.splitlines():
        if text.startswith(line):
            return float(text.rsplit(" ", 1)[1])
    return 0.0


def test_a1_a_committed_half_becomes_one_record_as_it_was_prepared(
    service: Service, group: str
) -> None:
    topic = service.new_topic()
    key = base64.b64encode(b"\x00\xffkey").decode()
    message_id = service.prepare(
        group,
        topic,
        key_base64=key,
        headers={"tenant": "north", "lang": "zh"},
        content_type="application/json",
        transaction_id="invoice-1",
    )
    answer = service.end(message_id, "COMMIT", wait=20)
    assert answer.status_code == 200
    assert answer.json()["state"] == "PUBLISHED"
    (record,) = service.records(topic)
    assert (record.key, record.value) == (b"\x00\xffkey", b"points")
    assert answer.json()["publication"]["offset"] == record.offset
    names = [name for name, _ in record.headers]
    assert names == [
        "outbox_message_id",
        "outbox_batch",
        "outbox_decided_by",
        "outbox_producer_group",
        "outbox_transaction_id",
        "content-type",
        "tenant",
        "lang",
    ]
    line = (
        f'outbox_half_ended_total{{decided_by="producer",decision="COMMIT",producer_group="{group}"'
    )
    assert counter(service, line) == 1


def test_a3_an_unknown_end_changes_nothing(service: Service, group: str) -> None:
    message_id = service.prepare(group, service.new_topic())
    before = service.get(message_id)
    answer = service.end(message_id, "UNKNOWN")
    assert (answer.status_code, answer.json()["state"]) == (200, "PREPARED")
    assert answer.json()["decision"] is None
    assert service.get(message_id) == before


def test_a6_no_consumer_sees_a_prepared_half(service: Service, group: str) -> None:
    topic = service.new_topic()
    service.prepare(group, topic, value="half")
    marker = service.prepare(group, topic, value="whole")
    service.end(marker, "COMMIT", wait=20)
    for committed in (True, False):
        values = [record.value for record in service.records(topic, committed=committed)]
        assert b"half" not in values
        assert b"whole" in values


def test_a25_racing_ends_have_one_winner(service: Service, group: str) -> None:
    topic = service.new_topic()
    message_id = service.prepare(group, topic)
    decisions = ["COMMIT", "ROLLBACK"] * 100
    with ThreadPoolExecutor(32) as executor:
        answers = list(executor.map(lambda d: (d, service.end(message_id, d)), decisions))
    fresh = [a for _, a in answers if a.status_code == 200 and not a.json()["already_ended"]]
    assert len(fresh) == 1
    winner = fresh[0].json()["decision"]
    for decision, answer in answers:
        if decision == winner:
            assert answer.status_code == 200
        else:
            assert (answer.status_code, answer.json()["winning_decision"]) == (409, winner)
    marker = service.prepare(group, topic, value="marker")
    service.end(marker, "COMMIT", wait=20)
    service.wait_state(message_id, "PUBLISHED", "ROLLED_BACK")
    ids = [record.message_id for record in service.records(topic)]
    assert ids.count(message_id) == (winner == "COMMIT")


@pytest.mark.parametrize(
    "delay",
    [{"deliver_after": 5}, {"headers": {"DELAY": "3"}}, {"headers": {"TIMER_DELIVER_MS": "1"}}],
)
def test_a36_a_delay_is_refused_and_leaves_no_row(
    service: Service, group: str, delay: dict[str, object]
) -> None:
    body = {"producer_group": group, "topic": service.new_topic(), "value": "v", **delay}
    answer = service.http.post("/v1/half-messages", json=body)
    assert (answer.status_code, answer.json()["code"]) == (422, "delay-not-supported")
    listed = service.http.get("/v1/half-messages", params={"producer_group": group})
    assert listed.json()["data"] == []


def test_a36_each_item_of_a_batch_is_decided_separately(service: Service, group: str) -> None:
    topic = service.new_topic()
    items = [{"producer_group": group, "topic": topic, "value": str(n)} for n in range(100)]
    for bad in (7, 42, 99):
        items[bad] = {"producer_group": group, "topic": topic}
    answer = service.http.post("/v1/half-messages/batch", json={"items": items})
    assert answer.status_code == 207
    statuses = [item["status"] for item in answer.json()["items"]]
    assert (statuses.count(201), statuses.count(422)) == (97, 3)
    ends = [
        {"message_id": item["result"]["message_id"], "decision": ("COMMIT", "ROLLBACK")[n % 2]}
        for n, item in enumerate(answer.json()["items"])
        if item["status"] == 201
    ]
    ended = service.http.post(
        "/v1/half-messages/end-batch", json={"items": ends}, headers={"Prefer": "wait=20"}
    )
    assert {item["status"] for item in ended.json()["items"]} == {200}
    committed = {end["message_id"] for end in ends if end["decision"] == "COMMIT"}
    assert {record.message_id for record in service.records(topic)} == committed


def test_a37_a_repeated_prepare_gives_one_half(service: Service, group: str) -> None:
    topic = service.new_topic()
    first = service.prepare(group, topic, transaction_id="t-1")
    body = {"producer_group": group, "topic": topic, "transaction_id": "t-1"}
    again = service.http.post("/v1/half-messages", json={**body, "value": "points"})
    assert (again.status_code, again.json()["message_id"]) == (201, first)
    assert again.headers["Idempotency-Replayed"] == "true"
    other = service.http.post("/v1/half-messages", json={**body, "value": "other"})
    assert (other.status_code, other.json()["code"]) == (422, "transaction-id-reused")
    assert other.json()["existing_message_id"] == first
