"""Logs that start above 0, as every log does after its retention."""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka import OFFSET_END, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

EXPIRED = 12
"""The offset at which a log starts whose first records retention has deleted."""


def log_starts_above_zero(bootstrap_servers: str, topics: Sequence[str]) -> None:
    """Write to every partition of the topics, and delete what was written."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    described = {each: admin.list_topics(each, timeout=60).topics[each] for each in topics}
    places = [(each, n) for each, found in described.items() for n in found.partitions]
    write_foreign(bootstrap_servers, places, EXPIRED)
    until = [TopicPartition(*place, OFFSET_END) for place in places]
    for future in admin.delete_records(until).values():
        future.result(timeout=60)


def write_foreign(
    bootstrap_servers: str, places: Sequence[tuple[str, int]], count: int = EXPIRED
) -> None:
    """Write records of one key, which no relay has written, to each partition."""
    producer = Producer({"bootstrap.servers": bootstrap_servers, "linger.ms": 0, "log_level": 0})
    for topic, partition in places:
        for number in range(count):
            producer.produce(topic, str(number).encode(), b"aged", partition=partition)
    assert producer.flush(60) == 0
