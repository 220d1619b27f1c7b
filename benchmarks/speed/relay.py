"""How many records per second does the relay alone publish, compared with a raw producer?

A backlog of committed half messages is stored by COPY; then all shards publish it, and later one
shard alone. The raw producer sends the same records with their headers. Ratios are to the raw
idempotent producer.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from msgspec.structs import replace

from benchmarks.load.committed import commit_directly, register
from benchmarks.measure.machine import report, start
from benchmarks.raw.producer_rate import idempotent_rate, transactional_rate
from checker.relay.shard_relay import ShardRelay
from checker.relay.visibility import LOOK_SECONDS, VisibilityWatch
from checker.relay_wiring import RelayBuilder, tune_garbage_collector
from cli.stores.schema import upgrade
from devservers.kafka import EmbeddedKafka
from devservers.postgres import EmbeddedPostgres
from outbox.kafka.progress_topic import ensure_progress_topic
from outbox.messages.message import Content
from outbox.messages.message_id import SHARDS, HalfId, Nonce, shard_of
from outbox.messages.record import Committed, Record, record_of
from outbox.postgres.sessions.connections import connect
from outbox.settings.environment import load_settings
from outbox.telemetry.events import configure_logging
from outbox.telemetry.metrics import Metrics

TOPIC = "bench"
FLUSH = 2000
KEYS = 5000


def main() -> None:
    """Run the benchmark; ``--batches`` are the largest numbers of records per Kafka transaction."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--size", type=int, default=256, help="bytes of each value")
    parser.add_argument("--batches", type=int, nargs="+", default=[500, 2000])
    arguments = parser.parse_args()
    configure_logging("error", "json")
    tune_garbage_collector()
    with servers() as (database_url, bootstrap_servers):
        start("relay", messages=arguments.messages, value_bytes=arguments.size)
        records = [record(n, b"x" * arguments.size) for n in range(arguments.messages)]
        idempotent_rate(bootstrap_servers, records)
        raw = idempotent_rate(bootstrap_servers, records)
        report("raw idempotent producer", records_per_second=round(raw))
        for batch in arguments.batches:
            rate = transactional_rate(bootstrap_servers, records, batch)
            report("raw transactional producer", batch=batch, **_figures(rate, raw))
        for batch in arguments.batches:
            for shards in (SHARDS, 1):
                with relays(database_url, bootstrap_servers, batch, shards) as taken:
                    store(database_url, arguments.messages, arguments.size, shards)
                    report("relay", batch=batch, shards=shards, **_figures(drain(taken), raw))


@contextmanager
def servers() -> Iterator[tuple[str, str]]:
    """Run a migrated PostgreSQL and a Kafka with the topics; yield their addresses."""
    with tempfile.TemporaryDirectory(prefix="outbox-bench-") as folder:
        postgres = EmbeddedPostgres(Path(folder) / "postgres")
        kafka = EmbeddedKafka(Path(folder) / "kafka")
        try:
            postgres.start()
            kafka.start()
            upgrade(postgres.database_url)
            ensure_progress_topic(kafka.bootstrap_servers)
            admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
            admin.create_topics([NewTopic(TOPIC, num_partitions=6, replication_factor=1)])[
                TOPIC
            ].result()
            yield postgres.database_url, kafka.bootstrap_servers
        finally:
            kafka.stop()
            postgres.stop()


@contextmanager
def relays(
    database_url: str, bootstrap_servers: str, batch: int, shards: int
) -> Iterator[list[ShardRelay]]:
    """Open the relays of the first shards and let them take over; close them after the block."""
    settings = load_settings(
        {
            "OUTBOX_DATABASE_URL": database_url,
            "OUTBOX_KAFKA_BOOTSTRAP_SERVERS": bootstrap_servers,
            "OUTBOX_RELAY_BATCH_MAX": str(batch),
        }
    )
    builder = RelayBuilder(settings, Metrics())
    opened = [builder.open(shard) for shard in range(shards)]
    try:
        for relay in opened:
            _publish_all(relay)
        with _watched(builder.visibility):
            yield opened
    finally:
        for relay in opened:
            relay.close()


@contextmanager
def _watched(watch: VisibilityWatch) -> Iterator[None]:
    """Look which batches consumers see, as the checker does.

    Without it a relay that has lost its producer would read again all that it has published.
    """
    over = Event()

    def look() -> None:
        while not over.wait(LOOK_SECONDS):
            watch.look()

    thread = Thread(target=look)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def store(database_url: str, messages: int, size: int, shards: int) -> None:
    """Append a backlog whose keys belong to the first shards."""
    keys = [key for key in (b"key-%d" % n for n in range(KEYS)) if shard_of(TOPIC, key) < shards]
    with connect(database_url, "bench") as connection:
        template = register(connection, TOPIC)
        contents = [Content(topic=TOPIC, key=key, value=b"x" * size) for key in keys]
        for first in range(0, messages, FLUSH):
            flush = range(first, min(messages, first + FLUSH))
            commit_directly(
                connection,
                [replace(template, content=contents[n % len(contents)]) for n in flush],
            )


def drain(opened: Sequence[ShardRelay]) -> float:
    """Publish the whole backlog with one thread per shard; return records per second."""
    began = time.perf_counter()
    with ThreadPoolExecutor(len(opened)) as pool:
        published = sum(pool.map(_publish_all, opened))
    return published / (time.perf_counter() - began)


def _publish_all(relay: ShardRelay) -> int:
    """Publish until the backlog is empty; return the number of records."""
    published, done = 0, relay.run_once()
    while not done.until_commits:
        published += done.published
        Event().wait(done.rest_seconds)
        done = relay.run_once()
    return published


def record(n: int, value: bytes) -> Record:
    """Return a record as the relay makes it, with one of five thousand keys."""
    committed = Committed(
        HalfId(n << 4), Nonce(n), "producer", "account", None,
        TOPIC, b"key-%d" % (n % KEYS), value, None, None, None, (),
    )  # fmt: skip
    return record_of(committed, f"0.1.{n % FLUSH}")


def _figures(rate: float, raw: float) -> dict[str, float]:
    return {"records_per_second": round(rate), "to_raw": round(rate / raw, 2)}


if __name__ == "__main__":
    main()
