"""A prepared message, and the check of it."""

from datetime import UTC, datetime, timedelta

from outbox_client import Check, Message, PreparedMessage

NOW = datetime.now(UTC)  # noqa: TID251  compared with the database's own clock


def make_prepared(message_id: str = "m-1", group: str = "billing") -> PreparedMessage:
    """Return a message that was prepared just now."""
    return PreparedMessage(
        message_id=message_id,
        state="PREPARED",
        producer_group=group,
        transaction_id="t-1",
        topic="invoices",
        prepared_at=NOW,
        next_check_at=None,
        replayed=False,
        message=Message("invoices", "v"),
    )


def make_check(
    message_id: str = "m-1", group: str = "billing", prepared_at: datetime = NOW
) -> Check:
    """Return the first check of a message."""
    return Check(
        message_id=message_id,
        transaction_id="t-1",
        producer_group=group,
        topic="invoices",
        key=None,
        headers={},
        attempt=1,
        max_attempts=15,
        prepared_at=prepared_at,
        reply_by=prepared_at + timedelta(seconds=5),
    )
