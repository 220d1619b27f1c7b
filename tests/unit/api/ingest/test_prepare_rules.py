"""What is refused at prepare because Kafka would refuse its record for good."""

from __future__ import annotations

import pytest

from api.http.problems import Problem
from api.ingest.prepare_rules import refuse_unpublishable
from outbox.messages.message import Message
from outbox.messages.topics import UNSEEN, SeenTopic

LIMIT = 20
KEY = b"k" * 4


def message(value: bytes | None, **fields: object) -> Message:
    return Message(producer_group="billing", topic="points", key=KEY, value=value, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "seen", [UNSEEN, SeenTopic(may_write=True), SeenTopic(max_content_bytes=LIMIT)]
)
def test_what_is_not_known_to_be_refused_is_accepted(seen: SeenTopic) -> None:
    refuse_unpublishable(message(b"v" * (LIMIT - len(KEY))), seen)
    refuse_unpublishable(message(None), seen)


def test_a_topic_that_the_relay_may_not_write_is_refused_whatever_the_size() -> None:
    with pytest.raises(Problem) as refused:
        refuse_unpublishable(message(None), SeenTopic(may_write=False, max_content_bytes=LIMIT))
    assert (refused.value.slug, refused.value.errors[0][0]) == ("topic-not-allowed", "/topic")


def test_key_value_and_headers_count_against_the_limit_in_bytes() -> None:
    filled = message(b"v" * (LIMIT - len(KEY) - 3), headers=(("h", "ö"),))
    refuse_unpublishable(filled, SeenTopic(max_content_bytes=LIMIT))
    with pytest.raises(Problem) as refused:
        refuse_unpublishable(filled, SeenTopic(max_content_bytes=LIMIT - 1))
    assert refused.value.slug == "payload-too-large"
    assert str(LIMIT - 1) in refused.value.errors[0][1]
