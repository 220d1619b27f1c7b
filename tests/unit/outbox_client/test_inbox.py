"""The id of a record is read from the message of each library for Kafka."""

from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka import Message

from outbox_client.inbox import message_id

HEADERS: list[tuple[str, bytes]] = [("outbox_message_id", b"m-1"), ("tenant", b"north")]


@dataclass(frozen=True, slots=True)
class ConsumerRecord:
    """A record of aiokafka and kafka-python: its headers are an attribute."""

    headers: Any


@pytest.mark.parametrize(
    "record", [Message(headers=[*HEADERS]), ConsumerRecord(HEADERS), ConsumerRecord(tuple(HEADERS))]
)
def test_the_header_of_the_outbox_is_the_id(record: Any) -> None:
    assert message_id(record) == "m-1"


@pytest.mark.parametrize(
    "record", [Message(), Message(headers=[("id", b"m-1")]), ConsumerRecord(None)]
)
def test_a_record_of_somebody_else_is_refused(record: Any) -> None:
    with pytest.raises(ValueError, match="no header outbox_message_id"):
        message_id(record)
