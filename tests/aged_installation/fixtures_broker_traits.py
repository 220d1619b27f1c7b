"""What a life leaves in Kafka: logs that start above 0; deleted, grown and compacted topics.

None of it is this installation's: these are the topics of neighbours, and of our past.
"""

from __future__ import annotations

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from outbox.errors import KafkaUnavailable
from outbox.kafka.log_reader import KafkaLogReader
from outbox.reconciliation.log import LogEnd
from tests.aged_installation.fixtures_log_starts import (
    EXPIRED,
    log_starts_above_zero,
    write_foreign,
)
from tests.fixtures_kafka import delete_topic, make_topic
from tests.fixtures_waiting import wait_for

RETENTION_CHECKS = {
    "log.initial.task.delay.ms": "100",
    "log.retention.check.interval.ms": "1000",
}
"""For a broker whose retention is seen in seconds; as shipped it looks every five minutes."""


def topic_deleted(bootstrap_servers: str) -> str:
    """Delete a topic that had records; return its name."""
    topic = make_topic(bootstrap_servers, partitions=1, name="aged-deleted")
    write_foreign(bootstrap_servers, [(topic, 0)])
    delete_topic(bootstrap_servers, topic)
    wait_for(lambda: topic not in _admin(bootstrap_servers).list_topics(timeout=60).topics)
    return topic


def topic_recreated(bootstrap_servers: str) -> str:
    """Delete a topic and create another of its name; return the name."""
    topic = topic_deleted(bootstrap_servers)
    make_topic(bootstrap_servers, partitions=2, name=topic)
    write_foreign(bootstrap_servers, [(topic, 1)], 3)
    return topic


def topic_grown(bootstrap_servers: str) -> str:
    """Give a topic with records more partitions; return its name."""
    topic = make_topic(bootstrap_servers, partitions=1, name="aged-grown")
    write_foreign(bootstrap_servers, [(topic, 0)])
    admin = _admin(bootstrap_servers)
    admin.create_partitions([NewPartitions(topic, 3)])[topic].result(timeout=60)
    return topic


def topic_compacted(bootstrap_servers: str) -> str:
    """Create a compacted topic with a key written again and again; return its name."""
    config = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.01"}
    topic = make_topic(bootstrap_servers, partitions=1, name="aged-compacted", config=config)
    write_foreign(bootstrap_servers, [(topic, 0)], 3 * EXPIRED)
    return topic


def topic_expired(bootstrap_servers: str) -> str:
    """Let a topic's own retention delete records that are years old; return its name."""
    topic = make_topic(bootstrap_servers, partitions=2, name="aged-by-time")
    write_foreign(bootstrap_servers, [(topic, 0), (topic, 1)], time_ms=1)
    wait_for(lambda: _starts(bootstrap_servers, topic) == {EXPIRED}, every=0.2)
    return topic


def aged_broker(bootstrap_servers: str) -> None:
    """Let a broker with ``RETENTION_CHECKS`` live: every trait of this module."""
    topic_expired(bootstrap_servers)
    neighbours(bootstrap_servers)


def neighbours(bootstrap_servers: str) -> None:
    """Let a broker live whose retention is not seen in seconds: every trait but that one."""
    topic_recreated(bootstrap_servers)
    topic_grown(bootstrap_servers)
    compacted = topic_compacted(bootstrap_servers)
    expired = make_topic(bootstrap_servers, partitions=2, name="aged-expired")
    log_starts_above_zero(bootstrap_servers, [expired])
    write_foreign(bootstrap_servers, [(expired, 0), (compacted, 0)], 3)


def _starts(bootstrap_servers: str, topic: str) -> set[int]:
    """Return the first offsets of a topic's partitions; none while a leader is about to change."""
    log = KafkaLogReader(bootstrap_servers)
    try:
        return set(log.offsets(log.partitions([topic]), LogEnd.START).offsets.values())
    except (KafkaException, KafkaUnavailable):
        return set()


def _admin(bootstrap_servers: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
