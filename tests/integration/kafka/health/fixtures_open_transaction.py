"""A transaction of a stranger that stays open in a topic."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

from confluent_kafka import Producer

from outbox.messages.record import MESSAGE_ID

DAY = 86_400.0
SECONDS = 60.0


@contextmanager
def open_transaction(
    bootstrap_servers: str, topic: str, behind: float | None = DAY, age: float = DAY
) -> Iterator[None]:
    """Leave a transaction open for the block, whose first record has this age; then abort it.

    ``behind`` is the age of a relay's record that came after it; None: none came.
    """
    settings = {
        "bootstrap.servers": bootstrap_servers,
        "transactional.id": str(uuid4()),
        "transaction.timeout.ms": 600_000,
        "log_level": 0,
    }
    producer = Producer(settings)
    producer.init_transactions(SECONDS)
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0, timestamp=_ago(age))
    producer.flush(SECONDS)
    if behind is not None:
        relay = Producer({"bootstrap.servers": bootstrap_servers, "log_level": 0})
        header = (MESSAGE_ID, b"id")
        relay.produce(topic, b"v", partition=0, timestamp=_ago(behind), headers=[header])
        assert not relay.flush(SECONDS)
    try:
        yield
    finally:
        producer.abort_transaction(SECONDS)


def _ago(seconds: float) -> int:
    return int((time.time() - seconds) * 1000)
