"""The size of a record that is counted before Kafka is asked."""

from __future__ import annotations

from api.ingest.record_size import REST_MAX_BYTES, batch_bytes
from outbox.messages.message import Message


def test_no_message_has_more_beside_its_key_and_value_than_is_counted_for_all() -> None:
    largest = Message(
        producer_group="g" * 128,
        topic="t" * 249,
        value=b"",
        headers=tuple((f"{n:0128}", b"v" * (512 - 128)) for n in range(64)),
        content_type="c" * 255,
        traceparent="t" * 55,
        transaction_id="\U0001f600" * 128,
    )
    assert batch_bytes(largest) <= REST_MAX_BYTES
