"""The inbox: one row that lets a consumer apply each record once, however often it is delivered.

The consumer inserts the record's ``outbox_message_id`` in the transaction that applies the record,
so that both are stored or neither. If the row exists, the record was applied before. The adapters
contain the SQL.
"""

from typing import Any, Final, Protocol

HEADER: Final = "outbox_message_id"
TABLE: Final = "outbox_inbox"


class Record(Protocol):
    """A record as a library for Kafka returns it."""

    @property
    def headers(self) -> Any:
        """Pairs of name and bytes, or a method that returns them."""
        ...


def message_id(record: Record, /) -> str:
    """Return the ``outbox_message_id`` of a record from confluent-kafka, aiokafka or kafka-python.

    Raises ValueError without it: the outbox did not publish the record.
    """
    headers = record.headers() if callable(record.headers) else record.headers
    found = dict(headers or ()).get(HEADER)
    if not isinstance(found, bytes):
        raise ValueError(f"the record has no header {HEADER}")
    return found.decode()
