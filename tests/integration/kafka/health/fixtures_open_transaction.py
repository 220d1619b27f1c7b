"""A transaction that stays open in a topic."""

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
def open_transaction(bootstrap_servers: str, topic: str, *, ours: bool = False) -> Iterator[None]:
    """Leave a transaction open for the block, whose record is a day old; then abort it.

    ``ours``: the record is one of a relay.
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
    name, began = MESSAGE_ID if ours else "other", int((time.time() - DAY) * 1000)
    producer.produce(topic, b"open", partition=0, timestamp=began, headers=[(name, b"id")])
    assert not producer.flush(SECONDS)
    try:
        yield
    finally:
        producer.abort_transaction(SECONDS)
