"""Two checkers share the shards; when one stops, dies or freezes, the other takes them over."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from confluent_kafka import Consumer, TopicPartition

from benchmarks.load.committed import commit_directly, register
from outbox.messages.message_id import SHARDS
from outbox.postgres.sessions.connections import connect
from tests.fixtures_kafka import make_topic
from tests.fixtures_replacing import replace
from tests.fixtures_separate_broker import separate_broker
from tests.fixtures_waiting import wait_for
from tests.integration.checker.fixtures_checker_process import CheckerProcess, start_checker

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]

GENEROUS_SECONDS = 30.0
"""A quiet machine takes over in 1 to 3 s; a test machine may be ten times slower."""
HOLDERS = (
    "SELECT pid, count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) GROUP BY pid"
)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A separate broker for this file: its progress topic belongs to one installation at a time."""
    with separate_broker(tmp_path_factory.mktemp("takeover"), progress_topic=True) as broker:
        yield broker.bootstrap_servers


@dataclass
class Ground:
    """One installation and a reader of everything that it publishes."""

    url: str
    servers: str
    topic: str
    connection: psycopg.Connection[Any]
    reader: Consumer
    rounds: int = 0

    def holders(self) -> int:
        """Return how many shards are held by a relay."""
        return sum(row[1] for row in self.connection.execute(HOLDERS))

    def commit_everywhere(self) -> set[bytes]:
        """Commit one message in each shard; return their values."""
        self.rounds += 1
        template = register(self.connection, self.topic)
        values = {f"{self.rounds}.{shard}".encode(): shard for shard in range(SHARDS)}
        for value, shard in values.items():
            commit_directly(self.connection, [replace(template, value=value)], shard)
        return set(values)

    def read(self, wanted: set[bytes], seconds: float = GENEROUS_SECONDS) -> None:
        """Return once each value has been read exactly once; nothing else may come."""
        missing, deadline = set(wanted), time.monotonic() + seconds
        while missing:
            assert time.monotonic() < deadline, f"not published in {seconds} s: {sorted(missing)}"
            message = self.reader.poll(0.02)
            if message is not None and message.error() is None:
                value: Any = message.value()
                missing.remove(value)


@pytest.fixture
def ground(database_url: str, servers: str) -> Iterator[Ground]:
    """Yield a separate installation for the test."""
    topic = make_topic(servers, partitions=1)
    reading = {
        "bootstrap.servers": servers,
        "group.id": "reader",
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "fetch.wait.max.ms": 20,
        "log_level": 0,
    }
    with connect(database_url, "test") as connection, closing(Consumer(reading)) as reader:
        reader.assign([TopicPartition(topic, 0, 0)])
        yield Ground(database_url, servers, topic, connection, reader)


@asynccontextmanager
async def relaying(ground: Ground) -> AsyncIterator[CheckerProcess]:
    """Run a checker's relay for the block."""
    checker = await start_checker(
        "--only", "relay", database_url=ground.url, kafka_bootstrap_servers=ground.servers
    )
    try:
        yield checker
    finally:
        if checker.process.returncode is None:
            checker.process.send_signal(signal.SIGKILL)
        await checker.stop(signal.SIGKILL)


def took_over(ground: Ground, began: float, how: str) -> float:
    """Wait until each shard has published a new message; return the time."""
    ground.read(ground.commit_everywhere())
    seconds = time.monotonic() - began
    print(f"{how}: all {SHARDS} shards publish again after {seconds:.2f} s")  # noqa: T201
    # One that stops in order may have published these before it let go of its shards.
    wait_for(lambda: ground.holders() == SHARDS, GENEROUS_SECONDS)
    return seconds


@pytest.mark.deep
async def test_shared_shards_of_a_stopped_and_of_a_killed_checker_are_taken_over(
    ground: Ground,
) -> None:
    async with relaying(ground) as first, relaying(ground) as second:
        await first.says("started")  # the second may hold all shards before that
        await asyncio.to_thread(wait_for, lambda: ground.holders() == SHARDS, GENEROUS_SECONDS)
        ground.read(ground.commit_everywhere())
        began = time.monotonic()
        first.process.send_signal(signal.SIGTERM)
        await asyncio.to_thread(took_over, ground, began, "SIGTERM")
        code, said = await first.ended()
        assert (code, "Traceback" in said) == (0, False)
        async with relaying(ground) as third:
            await third.says("started")
            began = time.monotonic()
            second.process.send_signal(signal.SIGKILL)
            await asyncio.to_thread(took_over, ground, began, "SIGKILL")
