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
