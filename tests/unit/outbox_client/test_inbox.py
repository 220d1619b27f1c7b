"""The id of a record is read from the message of each library for Kafka."""

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Message

from outbox_client.inbox import message_id

HEADERS: Any = [("outbox_message_id", b"m-1"), ("tenant", b"north")]


@pytest.mark.parametrize("record", [Message(headers=HEADERS), SimpleNamespace(headers=HEADERS)])
def test_the_header_of_the_outbox_is_the_id(record: Any) -> None:
    assert message_id(record) == "m-1"


@pytest.mark.parametrize("record", [Message(), SimpleNamespace(headers=HEADERS[1:])])
def test_a_record_of_somebody_else_is_refused(record: Any) -> None:
    with pytest.raises(ValueError, match="no header outbox_message_id"):
        message_id(record)
