"""Logs that start above 0, as every log does after its retention."""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka import OFFSET_END, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.fixtures_waiting import wait_for

_WITHOUT_LEADER = (
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.FENCED_LEADER_EPOCH,
)
EXPIRED = 12
"""The offset at which a log starts whose first records retention has deleted."""


def log_starts_above_zero(bootstrap_servers: str, topics: Sequence[str]) -> None:
    """Write to every partition of the topics, and delete what was written."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    described = {each: admin.list_topics(each, timeout=60).topics[each] for each in topics}
    places = [(each, n) for each, found in described.items() for n in found.partitions]
    _write(bootstrap_servers, places)
    wait_for(lambda: _delete(admin, places), every=0.5)


def _delete(admin: AdminClient, places: Sequence[tuple[str, int]]) -> bool:
    """Delete what the partitions have; False while a busy broker has not taken all of them over."""
    until = [TopicPartition(*place, OFFSET_END) for place in places]
    try:
        for future in admin.delete_records(until).values():
            future.result(timeout=60)
    except KafkaException as error:
        if error.args[0].code() not in _WITHOUT_LEADER:
            raise
        return False
    return True


def _write(bootstrap_servers: str, places: Sequence[tuple[str, int]]) -> None:
    """Write records that no relay has written to each partition."""
    producer = Producer({"bootstrap.servers": bootstrap_servers, "linger.ms": 0, "log_level": 0})
    for topic, partition in places:
        for number in range(EXPIRED):
            producer.produce(topic, str(number).encode(), b"aged", partition=partition)
    assert producer.flush(60) == 0
