"""A transaction of a stranger that stays open in a topic."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

from confluent_kafka import Producer

DAY = 86_400


@contextmanager
def open_transaction(bootstrap_servers: str, topic: str) -> Iterator[None]:
    """Leave a transaction open for the block, whose first record is a day old; then abort it."""
    settings = {
        "bootstrap.servers": bootstrap_servers,
        "transactional.id": str(uuid4()),
        "transaction.timeout.ms": 600_000,
        "log_level": 0,
    }
    producer = Producer(settings)
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0, timestamp=int((time.time() - DAY) * 1000))
    producer.flush(60)
    try:
        yield
    finally:
        producer.abort_transaction(60)
