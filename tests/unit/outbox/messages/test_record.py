"""A half message as its Kafka record."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from outbox.messages.content_digest import content_digest
from outbox.messages.message import DecidedBy, HalfMessage
from outbox.messages.message_id import parse_message_id
from outbox.messages.record import (
    asks_for_delay,
    covered_headers,
    digest_in,
    digest_of,
    is_reserved,
)
from tests.fixtures_messages import make_group, make_message
from tests.fixtures_records import render


def test_the_batch_and_the_decision_are_not_covered_by_the_digest() -> None:
    message = make_message(make_group("billing"), transaction_id="t")
    half_id, nonce = parse_message_id("0f6c1c0e-8d0b-8c55-9a54-6f2b7c1d9e10")
    half = HalfMessage(
        half_id=half_id,
        nonce=nonce,
        message=message,
        prepared_at=datetime(2026, 1, 1, tzinfo=UTC),
        content_digest=digest_of(half_id, nonce, message),
    )
    record = render(half, DecidedBy.OPERATOR, "9.9.9", redriven="act-1")
    message_id, covered = str(half.message_id).encode(), record.headers[4:]
    assert half.content_digest == content_digest(
        message_id, record.topic, record.key, record.value, covered
    )
    assert covered == covered_headers(message)
    ordinary = render(half, DecidedBy.PRODUCER, "9.9.9")
    assert digest_in(record) == digest_in(ordinary) == half.content_digest


@pytest.mark.parametrize(
    "name", ["outbox_x", "OUTBOX_", "webhook-id", "Content-Type", "traceparent", "TraceState"]
)
def test_reserved_header_names_are_known_in_any_case(name: str) -> None:
    assert is_reserved(name)


@pytest.mark.parametrize("name", ["ce_id", "tenant", "content-encoding", "webhook"])
def test_other_header_names_are_free(name: str) -> None:
    assert not is_reserved(name)


@pytest.mark.parametrize(
    ("name", "asks"), [("DELAY", True), ("timer_deliver_ms", True), ("delayed", False)]
)
def test_header_names_that_ask_for_a_delay_are_known(name: str, asks: bool) -> None:
    assert asks_for_delay(name) is asks
