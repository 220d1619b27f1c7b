"""The fence with the real service: a check during a paused payment, up to Kafka.

With the barrier the late local commit fails. With a simple look-up instead, the payment
exists and its message is lost: the anomaly that the barrier prevents.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
import pytest

from devservers.loopback import free_ports
from devservers.postgres import EmbeddedPostgres
from outbox_client import (
    Check,
    CheckEndpoint,
    CheckListener,
    LocalTransactionState,
    Message,
    PreparedMessage,
    TransactionProducer,
)
from outbox_client.psycopg import PsycopgBarrier
from tests.e2e.fixtures_service import Service
from tests.fixtures_databases import drop_database, make_database
from tests.integration.client.checks.fixtures_check_servers import wsgi_server

pytestmark = pytest.mark.e2e

BARRIER = PsycopgBarrier()
COMMIT = LocalTransactionState.COMMIT
ROLLBACK = LocalTransactionState.ROLLBACK


@dataclass(slots=True)
class Shop:
    """A producer's database, and its answers to checks."""

    database: str
    service: Service
    topic: str

    def payments(self) -> int:
        """Count the payments."""
        with psycopg.connect(self.database) as connection:
            row = connection.execute("SELECT count(*) FROM payment").fetchone()
        return int(row[0]) if row else 0

    def pay(
        self, pause: Callable[[PreparedMessage], object], *, record: bool
    ) -> Callable[[PreparedMessage], LocalTransactionState]:
        """Return a local transaction that pauses between paying and committing."""

        def local_transaction(prepared: PreparedMessage) -> LocalTransactionState:
            with psycopg.connect(self.database) as connection:
                connection.execute("INSERT INTO payment VALUES (%s)", (prepared.transaction_id,))
                pause(prepared)
                if record:
                    BARRIER.record(connection, prepared)
            return COMMIT

        return local_transaction

    def until_rolled_back(self, prepared: PreparedMessage) -> None:
        """Wait for the service's check to be answered."""
        message = self.service.wait_state(prepared.message_id, "ROLLED_BACK")
        assert message["decided_by"] == "check"


class BarrierLookup:
    """Answers what the barrier proves."""

    def __init__(self, shop: Shop) -> None:
        self.shop = shop

    def check_local_transaction(self, check: Check, /) -> LocalTransactionState:
        with psycopg.connect(self.shop.database, autocommit=True) as connection:
            return BARRIER.check(connection, check)


@pytest.fixture
def shop(service: Service, postgres_server: EmbeddedPostgres) -> Iterator[Shop]:
    """A shop on a separate PostgreSQL server: an open transaction delays its whole server."""
    database = make_database(postgres_server.database_url, None)
    with psycopg.connect(database, autocommit=True) as connection:
        BARRIER.create_table(connection)
        connection.execute("CREATE TABLE payment (transaction_id text PRIMARY KEY)")
    yield Shop(database, service, service.new_topic("fence"))
    drop_database(postgres_server.database_url, database)


@contextmanager
def producer_of(shop: Shop, listener: CheckListener) -> Iterator[TransactionProducer]:
    """Register a group whose checks the listener answers; yield its producer."""
    (port,) = free_ports(1)
    http, group = shop.service.http, shop.service.new_name("fence-group")
    settings = {"transaction_timeout_seconds": 1, "check_interval_seconds": 1}
    url = f"http://127.0.0.1:{port}/outbox/check"
    answer = http.put(f"/v1/producer-groups/{group}", json={"check_url": url, **settings})
    secret = answer.json()["check_secret"]
    with (
        CheckEndpoint(group, secret, listener) as endpoint,
        wsgi_server(endpoint, port),
        TransactionProducer(shop.service.facts()["api_url"], group) as producer,
    ):
        yield producer


def test_a_payment_whose_end_was_lost_is_committed_by_the_check(shop: Shop) -> None:
    with producer_of(shop, BarrierLookup(shop)) as producer:
        prepared = producer.prepare(Message(shop.topic, "100", key="m1"))
        shop.pay(lambda _: None, record=True)(prepared)
        message = shop.service.wait_state(prepared.message_id, "PUBLISHED")
    assert message["decided_by"] == "check"
    records = shop.service.records(shop.topic)
    assert [record.message_id for record in records] == [prepared.message_id]


def test_a_send_that_waits_sees_its_record_in_kafka(shop: Shop) -> None:
    with producer_of(shop, BarrierLookup(shop)) as producer:
        message = Message(shop.topic, "100", key="m1", headers={"tenant": "north"})
        sent = producer.send_in_transaction(message, shop.pay(lambda _: None, record=True), wait=20)
    assert (sent.state, sent.end_delivered) == ("PUBLISHED", True)
    assert sent.publication is not None
    [record] = shop.service.records(shop.topic)
    assert (record.partition, record.offset) == (
        sent.publication.partition,
        sent.publication.offset,
    )
    assert (record.key, record.value) == (b"m1", b"100")
    assert dict(record.headers)["tenant"] == "north"
