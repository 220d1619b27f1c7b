"""A half message as its Kafka record."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from outbox.messages.content_digest import content_digest
from outbox.messages.message import DecidedBy, HalfMessage
from outbox.messages.message_id import HalfId, Nonce, parse_message_id
from outbox.messages.record import (
    asks_for_delay,
    covered_headers,
    digest_in,
    digest_of,
    is_reserved,
)
from tests.fixtures_messages import make_group, make_message
from tests.fixtures_records import render

HALF_ID, NONCE = parse_message_id("0f6c1c0e-8d0b-8c55-9a54-6f2b7c1d9e10")


def make_half(half_id: HalfId = HALF_ID, nonce: Nonce = NONCE, **fields: object) -> HalfMessage:
    message = make_message(make_group("billing"), topic="invoices.issued", **fields)  # type: ignore[arg-type]
    digest = digest_of(half_id, nonce, message)
    return HalfMessage(
        half_id=half_id,
        nonce=nonce,
        message=message,
        prepared_at=datetime(2026, 1, 1, tzinfo=UTC),
        content_digest=digest,
    )


def test_headers_have_their_fixed_order() -> None:
    half = make_half(
        key=b"cust-58",
        transaction_id="invoice-7731",
        content_type="application/json",
        traceparent="00-1-2-01",
        headers=(("tenant", b"north"), ("schema", b"\x01\xff"), ("none", None)),
    )
    record = render(half, DecidedBy.CHECK, "3.17.0")
    assert record.headers == (
        ("outbox_message_id", b"0f6c1c0e-8d0b-8c55-9a54-6f2b7c1d9e10"),
        ("outbox_batch", b"3.17.0"),
        ("outbox_decided_by", b"check"),
        ("outbox_producer_group", b"billing"),
        ("outbox_transaction_id", b"invoice-7731"),
        ("content-type", b"application/json"),
        ("traceparent", b"00-1-2-01"),
        ("tenant", b"north"),
        ("schema", b"\x01\xff"),
        ("none", None),
    )


def test_absent_optional_headers_leave_no_gap() -> None:
    names = [name for name, _ in render(make_half(), DecidedBy.PRODUCER, "0.1.0").headers]
    assert names == [
        "outbox_message_id",
        "outbox_batch",
        "outbox_decided_by",
        "outbox_producer_group",
    ]


def test_the_batch_and_the_decision_are_not_covered_by_the_digest() -> None:
    half = make_half(transaction_id="t")
    record = render(half, DecidedBy.OPERATOR, "9.9.9", redriven="act-1")
    message_id, covered = str(half.message_id).encode(), record.headers[4:]
    assert half.content_digest == content_digest(
        message_id, record.topic, record.key, record.value, covered
    )
    assert covered == covered_headers(half.message)
    ordinary = render(half, DecidedBy.PRODUCER, "9.9.9")
    assert digest_in(record) == digest_in(ordinary) == half.content_digest


@pytest.mark.parametrize(
    "change",
    [{"topic": "other"}, {"key": b"k2"}, {"key": None}, {"value": b""}, {"value": None},
     {"headers": (("a", b"b"),)}, {"headers": (("a", None),)}],
)  # fmt: skip
def test_every_alteration_changes_the_digest(change: dict[str, object]) -> None:
    half = make_half(key=b"k", value=b"v")
    message = replace(half.message, **change)
    assert digest_of(HALF_ID, NONCE, message) != half.content_digest


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
