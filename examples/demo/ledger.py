"""The books: payments, records and grants, read from three stores and compared one by one."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from time import monotonic
from typing import Any

import psycopg
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from examples.member_service.points import PointsEarned, read_event

READ_SECONDS = 30.0
POLL_SECONDS = 0.2

Entries = Counter[tuple[str, str, str, int]]
"""The number of occurrences of each (message id, purchase, member, amount)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Books:
    """The same entries from three stores."""

    payments: Entries
    records: Entries
    grants: Entries
    points: int

    @property
    def money(self) -> int:
        """The amount that was taken from balances."""
        return sum(entry[3] * times for entry, times in self.payments.items())

    @property
    def equal(self) -> bool:
        """True if payments = records = grants, each once, and points = money."""
        once = all(times == 1 for times in self.records.values())
        same = self.payments == self.records == self.grants
        return once and same and self.points == self.money

    def differences(self) -> list[str]:
        """Return at most five entries that are not in all three stores exactly once."""
        every = self.payments | self.records | self.grants
        wrong = [
            f"{entry[1]} ({entry[0]}): paid {self.payments[entry]}, "
            f"recorded {self.records[entry]}, granted {self.grants[entry]}"
            for entry in sorted(every)
            if {self.payments[entry], self.records[entry], self.grants[entry]} != {1}
        ]
        return wrong[:5]


def read_books(
    account_urls: Iterable[str], member_url: str, bootstrap_servers: str, topic: str
) -> Books:
    """Read all three stores."""
    payments = "SELECT message_id, purchase_id, member, amount FROM payment"
    grants = "SELECT message_id, purchase_id, member, points FROM point_grant"
    total = _rows(member_url, "SELECT coalesce(sum(points), 0)::bigint FROM member_points")
    return Books(
        payments=Counter(row for url in account_urls for row in _rows(url, payments)),
        records=Counter(read_topic(bootstrap_servers, topic)),
        grants=Counter(_rows(member_url, grants)),
        points=total[0][0],
    )


def count(url: str, table: str) -> int:
    """Count the rows of a table of the demo."""
    return int(_rows(url, f"SELECT count(*) FROM {table}")[0][0])


def read_topic(bootstrap_servers: str, topic: str) -> list[PointsEarned]:
    """Read a topic from its beginning to its end, as ``read_committed`` consumers see it."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "demo-auditor",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
        }
    )
    try:
        partitions = consumer.list_topics(topic, timeout=READ_SECONDS).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        return _read_to_the_end(consumer, set(partitions))
    finally:
        consumer.close()


def _read_to_the_end(consumer: Consumer, unread: set[int]) -> list[PointsEarned]:
    events: list[PointsEarned] = []
    deadline = monotonic() + READ_SECONDS
    while unread:
        if monotonic() > deadline:
            raise TimeoutError(f"the topic was not read to its end in {READ_SECONDS:.0f} s")
        for record in consumer.consume(1000, timeout=POLL_SECONDS):
            if _is_end(record):
                unread.discard(record.partition() or 0)
            else:
                events.append(read_event(record))
    return events


def _is_end(record: Message) -> bool:
    error = record.error()
    if error is not None and error.code() != KafkaError._PARTITION_EOF:
        raise KafkaException(error)
    return error is not None


def _rows(url: str, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(query).fetchall()
