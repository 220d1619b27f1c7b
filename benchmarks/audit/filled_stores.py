"""Fills both stores like the service: COPY writes the commits, the relay publishes them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from msgspec.structs import replace

from benchmarks.load.committed import register
from benchmarks.load.one_by_one import commit_one_by_one
from benchmarks.measure.cpu_time import Meter
from benchmarks.speed.relay import KEYS, TOPIC, drain, relays, store
from cli.stores.schema import upgrade
from devservers.kafka import EmbeddedKafka
from devservers.postgres import EmbeddedPostgres
from outbox.kafka.progress_topic import ensure_progress_topic
from outbox.messages.message import Content
from outbox.messages.message_id import SHARDS
from outbox.postgres.sessions.connections import connect

PARTITIONS = 6
CHUNK = 250_000
"""Messages that are stored before they are published, so that the relay's memory stays small."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stores:
    """The addresses of the two stores, and the number of messages."""

    database_url: str
    bootstrap_servers: str
    meter: Meter
    messages: int


Store = Callable[[str, int, int], None]
"""Stores so many committed messages, of so many bytes, at the address of a PostgreSQL."""


def in_flushes(database_url: str, messages: int, size: int) -> None:
    """Store messages that were ended many at a time: one commit row a flush and shard."""
    store(database_url, messages, size, SHARDS)


def one_by_one(database_url: str, messages: int, size: int) -> None:
    """Store messages that were ended one by one: one commit row a message."""
    contents = [Content(topic=TOPIC, key=b"key-%d" % n, value=b"x" * size) for n in range(KEYS)]
    with connect(database_url, "bench") as connection:
        template = register(connection, TOPIC)
        commit_one_by_one(connection, [replace(template, content=c) for c in contents], messages)


@contextmanager
def stores(
    folder: Path | None, messages: int, size: int, fill: Store = in_flushes
) -> Iterator[Stores]:
    """Run both servers with at least so many published messages; a folder keeps them for later."""
    with ExitStack() as stack:
        if folder is None:
            scratch = tempfile.TemporaryDirectory(prefix="outbox-bench-")
            folder = Path(stack.enter_context(scratch))
        postgres = EmbeddedPostgres(folder / "postgres")
        kafka = EmbeddedKafka(folder / "kafka")
        for server in (postgres, kafka):
            stack.callback(server.stop)
            server.start()
        upgrade(postgres.database_url)
        _create_topics(kafka.bootstrap_servers)
        meter = Meter({"kafka": kafka.pid or 0, "postgres": postgres.pid or 0})
        there = _fill(postgres.database_url, kafka.bootstrap_servers, messages, size, fill)
        yield Stores(
            database_url=postgres.database_url,
            bootstrap_servers=kafka.bootstrap_servers,
            meter=meter,
            messages=there,
        )


def _create_topics(bootstrap_servers: str) -> None:
    ensure_progress_topic(bootstrap_servers)
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    if TOPIC not in admin.list_topics(timeout=30).topics:
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(30)


def _fill(database_url: str, bootstrap_servers: str, messages: int, size: int, fill: Store) -> int:
    """Store and publish the missing messages; return their total."""
    there = _committed(database_url)
    if there < messages:
        with relays(database_url, bootstrap_servers, 2000, SHARDS) as opened:
            while there < messages:
                chunk = min(CHUNK, messages - there)
                fill(database_url, chunk, size)
                drain(opened)
                there += chunk
        with psycopg.connect(database_url, autocommit=True) as connection:
            connection.execute("ANALYZE")
    return there


def _committed(database_url: str) -> int:
    with psycopg.connect(database_url) as connection:
        row = connection.execute(
            "SELECT coalesce(sum(cardinality(half_ids)), 0) FROM outbox.reconciliation_commits"
        ).fetchone()
    assert row is not None
    return int(row[0])
