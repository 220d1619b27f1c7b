"""What is refused at prepare because Kafka would refuse its record for good."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from api.http.problems import Problem
from api.ingest.prepare_rules import refuse_unpublishable
from api.ingest.record_size import REST_MAX_BYTES, batch_bytes
from outbox.messages.message import Message
from outbox.messages.topics import UNSEEN, SeenTopic

LIMIT = 400
KEY = b"k" * 4


def message(value: bytes | None, **fields: object) -> Message:
    return Message(producer_group="billing", topic="points", key=KEY, value=value, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "seen", [UNSEEN, SeenTopic(may_write=True, compacted=True), SeenTopic(max_message_bytes=LIMIT)]
)
def test_what_is_not_known_to_be_refused_is_accepted(seen: SeenTopic) -> None:
    refuse_unpublishable(message(b"v"), seen)
    refuse_unpublishable(message(None), seen)


def test_a_topic_that_the_relay_may_not_write_is_refused_whatever_the_size() -> None:
    with pytest.raises(Problem) as refused:
        refuse_unpublishable(message(None), SeenTopic(may_write=False, max_message_bytes=LIMIT))
    assert (refused.value.slug, refused.value.errors[0][0]) == ("topic-not-allowed", "/topic")


@pytest.mark.parametrize("value", [b"v", None])
def test_a_compacted_topic_takes_no_message_without_a_key(value: bytes | None) -> None:
    with pytest.raises(Problem) as refused:
        refuse_unpublishable(replace(message(value), key=None), SeenTopic(compacted=True))
    assert (refused.value.status, refused.value.errors[0][0]) == (422, "/key")


def test_a_record_that_is_too_large_is_refused_with_its_size_and_the_limit() -> None:
    filled = message(b"v" * 100, headers=(("h", b"\xff"), ("n", None)))
    size = batch_bytes(filled)
    refuse_unpublishable(filled, SeenTopic(max_message_bytes=size))
    with pytest.raises(Problem) as refused:
        refuse_unpublishable(filled, SeenTopic(max_message_bytes=size - 1))
    assert refused.value.slug == "payload-too-large"
    assert {str(size), str(size - 1)} <= {*refused.value.errors[0][1].split()}


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
