"""The member service reads the outbox's records, and nothing else."""

import pytest

from examples.member_service.points import PointsEarned, read_event

VALUE = b'{"purchase_id": "p1", "member": "m1", "points": 100}'


def test_a_record_of_the_outbox_is_read() -> None:
    headers = [("outbox_message_id", b"id-1"), ("content-type", b"application/json")]
    assert read_event(headers, VALUE) == PointsEarned("id-1", "p1", "m1", 100)


@pytest.mark.parametrize(
    ("headers", "value"),
    [(None, VALUE), ([], VALUE), ([("outbox_message_id", b"id-1")], None)],
)
def test_any_other_record_is_refused(
    headers: list[tuple[str, str | bytes | None]] | None, value: bytes | None
) -> None:
    with pytest.raises(ValueError, match="record without"):
        read_event(headers, value)
