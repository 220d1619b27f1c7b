"""A message is a value with its own transaction id."""

from uuid import UUID

import pytest

from outbox_client import Message


def test_a_missing_transaction_id_is_generated_once() -> None:
    message = Message("orders", "v")
    assert message.transaction_id
    assert message.transaction_id != Message("orders", "v").transaction_id


def test_a_message_keeps_its_own_headers() -> None:
    headers = {"tenant": "north"}
    message = Message("orders", "v", headers=headers)
    headers["tenant"] = "south"
    assert message.headers == {"tenant": "north"}


@pytest.mark.parametrize("tags", ["vip", b"raw"])
def test_one_text_as_tags_is_refused_because_each_letter_would_be_a_tag(tags: object) -> None:
    with pytest.raises(TypeError, match="several texts"):
        Message("orders", "v", tags=tags)  # type: ignore[arg-type]


def test_bytes_of_every_kind_and_uuids_are_what_is_sent() -> None:
    written, event = bytearray(b"v"), UUID(int=7)
    message = Message("orders", memoryview(written), key=event, transaction_id=event)
    written[0] = 0
    assert (message.value, message.key, message.transaction_id) == (b"v", str(event), str(event))
    assert Message("orders", None, key=written).key == b"\0"
