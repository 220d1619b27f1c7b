"""A consumer that works until it is killed."""

from collections.abc import Callable
from threading import Event
from typing import Any

import psycopg
from confluent_kafka import Consumer, TopicPartition

from outbox_client.inbox import message_id
from outbox_client.inbox.psycopg import PsycopgInbox

CONSUMER = "member-service"
INBOX = PsycopgInbox(CONSUMER)
EFFECT = "INSERT INTO effect VALUES (%s)"
REPEATED = "SELECT nextval('repeated')"
"""Counts what had its effect before; no rollback and no death takes it back."""


def live(asked: Any, works: Callable[[], object], stop: Event) -> None:
    """Apply records; their offsets are committed after their effects."""
    settings: dict[str, Any] = {
        "bootstrap.servers": asked["bootstrap_servers"],
        "group.id": CONSUMER,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "fetch.wait.max.ms": 50,
        "log_level": 0,
    }
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(asked["topic"], asked["partition"])])
    with psycopg.connect(asked["database_url"], autocommit=True) as db:
        while not stop.is_set():
            taken = consumer.consume(asked["batch_max"], timeout=0.05)
            records = [each for each in taken if not each.error()]
            if not records:
                continue
            works()
            with db.transaction():
                for record in records:
                    if INBOX.first_time(db, record):
                        db.execute(EFFECT, [message_id(record)])
                    else:
                        db.execute(REPEATED)
            consumer.commit(asynchronous=False)
