"""The stores, the topics and the check endpoint, which exist longer than every killed process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
from confluent_kafka import Consumer, TopicPartition

from outbox.kafka.progress_topic import ensure_progress_topic
from outbox.messages.record import MESSAGE_ID
from outbox.postgres.sessions.connections import Connection, connect
from tests.fixtures_kafka import make_topic, set_max_message_bytes
from tests.fixtures_plain_http import NO_TLS
from tests.fixtures_waiting import wait_for
from tests.integration.failpoints.fixtures_node import Node
from tests.integration.failpoints.fixtures_producer import CheckEndpoint, serving
from tests.integration.failpoints.fixtures_traffic import GROUP, Topics

CHECK_MAX = 4
IMMUNITY_SECONDS = 1
SMALLEST, USUAL = 2000, 1_048_588
PARTITIONS = 2

UNSEEN_LIMITS = """
CREATE OR REPLACE FUNCTION outbox.forget_limit() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN NEW.max_message_bytes := NULL; RETURN NEW; END';
CREATE OR REPLACE TRIGGER forget_limit BEFORE UPDATE ON outbox.topic
    FOR EACH ROW EXECUTE FUNCTION outbox.forget_limit();
UPDATE outbox.topic SET max_message_bytes = NULL
"""
"""Forgets the limits of topics, so that prepares are accepted which Kafka will refuse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumedRecord:
    """A committed record as a consumer reads it."""

    message_id: str
    topic: str
    partition: int
    offset: int
    key: str
    value: str


@dataclass(slots=True, kw_only=True)
class CrashEnvironment:
    """One database, one installation, two topics, for any number of consecutive runs."""

    node: Node
    connection: Connection
    database_url: str
    bootstrap_servers: str
    topics: Topics
    endpoint: CheckEndpoint
    began: int
    """The newest half that was there before: a former life leaves undecided and held ones."""
    is_lowered: bool = False
    _read: dict[tuple[str, int], int] = field(default_factory=dict)
    """Where the next run's records begin, by partition."""

    def one(self, statement: str, **parameters: Any) -> Any:
        """Return the only value that a statement reads."""
        return self.rows(statement, **parameters)[0][0]

    def rows(self, statement: str, **parameters: Any) -> list[tuple[Any, ...]]:
        """Return the rows that a statement reads."""
        return self.connection.execute(statement.encode(), parameters).fetchall()

    def newest_half(self) -> int:
        """Return the highest half id."""
        return newest_half(self.connection)

    def undecided(self) -> int:
        """Count the undecided halves."""
        return int(
            self.one(
                "SELECT count(*) FROM outbox.half_message h WHERE half_id > %(began)s"
                " AND NOT EXISTS (SELECT FROM outbox.op_message o WHERE o.half_id = h.half_id)",
                began=self.began,
            )
        )

    def held(self) -> int:
        """Count the records that wait until Kafka accepts them."""
        return int(
            self.one(
                "SELECT count(*) FROM outbox.held_record"
                " WHERE half_id > %(began)s AND released_at IS NULL AND dropped_at IS NULL",
                began=self.began,
            )
        )

    def waiting_in_sql(self) -> int:
        """Count the messages that were published in SQL and are not admitted yet."""
        return int(self.one("SELECT count(*) FROM outbox.plain_message"))

    def publish_in_sql(self, allowed: bool) -> str | None:
        """Turn SQL mode on or off; return the URL where producers may publish in it."""
        if allowed:
            asked = (GROUP, [self.topics.usual])
            self.connection.execute(
                "SELECT outbox.allow_publish(current_user::text, %s, %s)", asked
            )
        self.connection.execute("UPDATE outbox.installation SET plain_outbox = %s", (allowed,))
        return self.database_url if allowed else None

    def try_held_now(self) -> None:
        """Make held records due at the relay's next read, but for those that it marks just now."""
        self.connection.execute(
            "UPDATE outbox.held_record SET next_attempt_at = clock_timestamp() WHERE half_id IN"
            " (SELECT half_id FROM outbox.held_record WHERE half_id > %s FOR UPDATE SKIP LOCKED)",
            (self.began,),
        )

    def lower(self) -> None:
        """Make the small topic refuse large records, which the API shall not know."""
        if not self.is_lowered:
            self.connection.execute(UNSEEN_LIMITS)
            set_max_message_bytes(self.bootstrap_servers, self.topics.small, SMALLEST)
            self.is_lowered = True

    def raise_again(self) -> None:
        """Make the small topic accept large records."""
        if self.is_lowered:
            set_max_message_bytes(self.bootstrap_servers, self.topics.small, USUAL)
            self.is_lowered = False

    def new_records(self, expected: int) -> list[ConsumedRecord]:
        """Return what was committed to Kafka since the last call, up to the present end.

        Waits a limited time for ``expected`` records, then reads on to detect superfluous records.
        """
        found: list[ConsumedRecord] = []

        def all_there() -> bool:
            found.extend(self._read_on())
            return len(found) >= expected

        wait_for(all_there, seconds=90, every=0.1)
        return [*found, *self._read_on()]

    def _read_on(self) -> list[ConsumedRecord]:
        """Read every partition up to its last stable offset."""
        config = {
            "bootstrap.servers": self.bootstrap_servers,
            "group.id": "failpoints",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 20,
            "log_level": 0,
        }
        names = (self.topics.usual, self.topics.small)
        with closing(Consumer(config)) as consumer:
            places = [TopicPartition(name, n) for name in names for n in range(PARTITIONS)]
            return [seen for place in places for seen in self._read_partition(consumer, place)]

    def _read_partition(
        self, consumer: Consumer, place: TopicPartition
    ) -> Iterator[ConsumedRecord]:
        """Read one partition up to its end offset, because transactions leave markers."""
        low, end = consumer.get_watermark_offsets(place, timeout=20)
        begin = self._read.get((place.topic, place.partition), low)
        consumer.assign([TopicPartition(place.topic, place.partition, begin)])

        def reached() -> bool:
            return bool(consumer.position([place])[0].offset >= end)

        while begin < end and not reached():
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                yield _seen(message)
        self._read[(place.topic, place.partition)] = end


def newest_half(connection: Connection) -> int:
    """Return the highest half id."""
    row = connection.execute("SELECT coalesce(max(half_id), 0) FROM outbox.half_message").fetchone()
    assert row is not None
    return int(row[0])


def _seen(message: Any) -> ConsumedRecord:
    return ConsumedRecord(
        message_id=dict(message.headers() or ())[MESSAGE_ID].decode(),
        topic=message.topic(),
        partition=message.partition(),
        offset=message.offset(),
        key=(message.key() or b"").decode(),
        value=(message.value() or b"").decode(),
    )


@contextmanager
def open_environment(
    database_url: str, bootstrap_servers: str, folder: Path
) -> Iterator[CrashEnvironment]:
    """Prepare everything on a separate migrated database, for the block.

    Others may use the broker, but no relay of another installation.
    """
    ensure_progress_topic(bootstrap_servers, replication=1)
    topics = Topics(
        usual=make_topic(bootstrap_servers, partitions=PARTITIONS),
        small=make_topic(bootstrap_servers, partitions=PARTITIONS),
    )
    endpoint = CheckEndpoint()
    with (
        connect(database_url, "failpoints") as connection,
        serving(endpoint) as check_url,
        Node(database_url, bootstrap_servers, folder) as node,
    ):
        connection.execute("UPDATE outbox.installation SET installation_id = gen_random_uuid()")
        environment = CrashEnvironment(
            node=node,
            connection=connection,
            database_url=database_url,
            bootstrap_servers=bootstrap_servers,
            topics=topics,
            endpoint=endpoint,
            began=newest_half(connection),
        )
        _register(environment, check_url)
        yield environment


def _register(environment: CrashEnvironment, check_url: str) -> None:
    body = {
        "check_url": check_url,
        "check_interval_seconds": 1,
        "check_max": CHECK_MAX,
        "transaction_timeout_seconds": IMMUNITY_SECONDS,
    }
    environment.node.start()

    def registered() -> bool:
        url = f"{environment.node.url}/v1/producer-groups/{GROUP}"
        try:
            answer = httpx2.put(
                url, content=json.dumps(body), headers={"content-type": JSON}, verify=NO_TLS
            )
        except httpx2.TransportError:
            return False
        assert answer.status_code in (200, 201, 503), answer.text
        return answer.status_code != 503

    wait_for(registered, seconds=60)
    environment.node.kill()


JSON = "application/json"
