"""How fast does Kafka alone store such records from a plain Python producer?"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import islice
from typing import Any

from confluent_kafka import Producer

from outbox.messages.record import Record


def idempotent_rate(bootstrap_servers: str, records: Sequence[Record]) -> float:
    """Return the records per second of an idempotent producer that waits once, at the end."""
    producer = Producer(_config(bootstrap_servers))
    began = time.perf_counter()
    for place, record in enumerate(records):
        _produce(producer, record)
        if place % 1000 == 0:
            producer.poll(0)
    producer.flush(60)
    return len(records) / (time.perf_counter() - began)


def transactional_rate(bootstrap_servers: str, records: Sequence[Record], batch: int) -> float:
    """Return the records per second of transactions of ``batch`` records."""
    producer = Producer({**_config(bootstrap_servers), "transactional.id": "outbox-benchmark"})
    producer.init_transactions(30)
    began, rest = time.perf_counter(), iter(records)
    while chunk := list(islice(rest, batch)):
        producer.begin_transaction()
        for record in chunk:
            _produce(producer, record)
        producer.flush(60)
        producer.commit_transaction()
    return len(records) / (time.perf_counter() - began)


def _produce(producer: Producer, record: Record) -> None:
    producer.produce(record.topic, record.value, record.key, headers=list(record.headers))


def _config(bootstrap_servers: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": bootstrap_servers,
        "enable.idempotence": True,
        "partitioner": "murmur2_random",
        "linger.ms": 5,
        "log_level": 0,
    }
