"""What waits in a producer while no broker answers."""

from __future__ import annotations

from threading import Thread
from uuid import uuid4

from outbox.kafka.client_config import idempotent_producer_config
from outbox.kafka.publisher import AtLeastOncePublisher
from outbox.messages.record import Record
from tests.fixtures_waiting import wait_for


def test_what_no_broker_has_acknowledged_is_queued() -> None:
    config = idempotent_producer_config("127.0.0.1:1", {})
    publisher = AtLeastOncePublisher(lambda _: config, 0)
    assert publisher.queued() == 0
    publisher.fence(uuid4())
    record = Record("orders", b"value", None, 0, ())
    sending = Thread(target=lambda: publisher.publish([record] * 3, b""), daemon=True)
    sending.start()
    wait_for(lambda: publisher.queued() == 3)
    publisher.drop()
    assert publisher.queued() == 0


def test_a_producer_that_is_served_keeps_no_notes_of_lost_connections() -> None:
    config = idempotent_producer_config("127.0.0.1:1", {})
    publisher = AtLeastOncePublisher(lambda _: config, 0)
    publisher.fence(uuid4())
    wait_for(lambda: publisher.queued() > 3)
    publisher.serve()
    assert publisher.queued() <= 1, "one more may have come meanwhile"
    publisher.drop()
