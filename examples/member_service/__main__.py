"""Run the member service: ``python -m examples.member_service --bootstrap-servers …``.

Offsets are committed to Kafka only after the points are committed to PostgreSQL. The database
URL comes from the environment: MEMBER_DATABASE_URL.
"""

import argparse
import os
import signal
import sys
from threading import Event

import psycopg
from confluent_kafka import Consumer, KafkaException, Message

from examples.member_service.points import create_tables, grant

BATCH_MAX = 500
POLL_SECONDS = 0.5
SESSION_MS = 6000


def main() -> None:
    """Grant points until SIGTERM or Ctrl-C."""
    arguments = _arguments()
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with psycopg.connect(os.environ["MEMBER_DATABASE_URL"], autocommit=True) as connection:
        create_tables(connection)
        consumer = _consumer(arguments.bootstrap_servers)
        consumer.subscribe([arguments.topic])
        try:
            while not stop.is_set():
                _consume_once(consumer, connection)
        finally:
            consumer.close()


def _consumer(bootstrap_servers: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "member-service",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            # After this time the partitions of a killed member go to another one.
            "session.timeout.ms": SESSION_MS,
            "topic.metadata.refresh.interval.ms": 1000,
            "log_level": 3,
        }
    )


def _consume_once(consumer: Consumer, connection: psycopg.Connection[object]) -> None:
    records = [r for r in consumer.consume(BATCH_MAX, POLL_SECONDS) if _is_record(r)]
    if not records:
        return
    grant(connection, records)
    consumer.commit(asynchronous=False)


def _is_record(message: Message) -> bool:
    error = message.error()
    if error is None:
        return True
    if error.fatal():
        raise KafkaException(error)
    print(f"member service: {error.str()}", file=sys.stderr)
    return False


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="member_service", description=__doc__)
    parser.add_argument(
        "--bootstrap-servers", required=True, metavar="HOST:PORT,…", help="addresses of Kafka"
    )
    parser.add_argument("--topic", required=True, help="topic of the points")
    return parser.parse_args()


if __name__ == "__main__":
    main()
