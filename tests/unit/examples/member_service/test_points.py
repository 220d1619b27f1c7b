"""The member service reads the outbox's records, and nothing else."""

import pytest
from confluent_kafka import Message

from examples.member_service.points import PointsEarned, read_event

VALUE = b'{"purchase_id": "p1", "member": "m1", "points": 100}'
ID = ("outbox_message_id", b"id-1")


def test_a_record_of_the_outbox_is_read() -> None:
    record = Message(headers=[ID, ("content-type", b"application/json")], value=VALUE)
    assert read_event(record) == PointsEarned("id-1", "p1", "m1", 100)


@pytest.mark.parametrize("record", [Message(value=VALUE), Message(headers=[ID])])
def test_any_other_record_is_refused(record: Message) -> None:
    with pytest.raises(ValueError, match="record"):
        read_event(record)
