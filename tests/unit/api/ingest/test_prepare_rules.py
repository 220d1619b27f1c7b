"""What is refused at prepare because Kafka would refuse its record for good."""

from __future__ import annotations

import pytest

from api.ingest.prepare_rules import unpublishable
from outbox.messages.message import Content
from outbox.messages.seen_topics import UNSEEN, SeenTopic

LIMIT = 20
KEY = b"k" * 4


def content(value: bytes | None, **fields: object) -> Content:
    return Content(topic="points", key=KEY, value=value, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "seen",
    [
        UNSEEN,
        SeenTopic(may_write=True),
        SeenTopic(partitions=3),
        SeenTopic(max_content_bytes=LIMIT),
    ],
)
def test_what_is_not_known_to_be_refused_is_accepted(seen: SeenTopic) -> None:
    assert unpublishable(content(b"v" * (LIMIT - len(KEY))), seen) is None
    assert unpublishable(content(None), seen) is None


def test_a_topic_that_the_relay_may_not_write_is_refused_whatever_the_size() -> None:
    problem = unpublishable(content(None), SeenTopic(may_write=False, max_content_bytes=LIMIT))
    assert problem is not None
    assert (problem.slug, problem.errors[0][0]) == ("topic-not-allowed", "/topic")


@pytest.mark.parametrize("limit", [LIMIT, LIMIT - 1])
def test_key_value_and_headers_count_against_the_limit_in_bytes(limit: int) -> None:
    header = ("h", "ö")
    filled = content(b"v" * (LIMIT - len(KEY) - 3), headers=(header,))
    problem = unpublishable(filled, SeenTopic(max_content_bytes=limit))
    if limit == LIMIT:
        assert problem is None
    else:
        assert problem is not None
        assert problem.slug == "payload-too-large"
        assert str(limit) in problem.errors[0][1]
