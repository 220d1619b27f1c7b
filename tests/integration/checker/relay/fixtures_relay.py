"""Builds a database, topics and an installation for one test, with a relay between them."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from confluent_kafka import Consumer, TopicPartition
from msgspec.structs import replace

from benchmarks.load.committed import commit_directly, register
from checker.relay.shard_relay import RelayRound, ShardRelay
from checker.relay_wiring import RelayBuilder
from cli.stores.shard_resolution import ShardResolution
from outbox.clock import SystemClock
from outbox.messages.message import Message, MessageStatus
from outbox.messages.message_id import SHARDS, HalfId
from outbox.messages.record import Record
from outbox.operators.message_view import OperatorAction
from outbox.postgres.messages.message_status import statuses_now
from outbox.postgres.relay.commit_log import LOCK_SPACE
from outbox.postgres.sessions.connections import Connection, Pool, connect, make_pool
from outbox.relay.halt_resolution import HaltResolution
from outbox.relay.protocol.state import Phase
from outbox.settings.environment import load_settings
from outbox.telemetry.metrics import Metrics
from tests.fixtures_databases import as_role
from tests.fixtures_kafka import committed_records, make_topic
from tests.fixtures_paths import PROJECT

Result = TypeVar("Result")
SHARD = 3
ROUNDS = 400
HOLDER_ENDED = """
SELECT pg_terminate_backend(pid) FROM pg_locks
WHERE locktype = 'advisory' AND classid = %s AND objid = %s AND objsubid = 2 AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
RELAY = "tests.integration.checker.relay.fixtures_relay_process"


@dataclass
class RelayWorld:
    """Everything that a relay test uses; only shard 3 is used."""

    database_url: str
    bootstrap_servers: str
    topic: str
    progress_topic: str
    connection: Connection
    batch_max: int = 100
    metrics: Metrics = field(default_factory=Metrics)
    opened: list[ShardRelay] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        """The settings of an operator's command in this world."""
        return {
            "OUTBOX_DATABASE_URL": self.database_url,
            "OUTBOX_KAFKA_BOOTSTRAP_SERVERS": self.bootstrap_servers,
        }

    @property
    def checker_environment(self) -> dict[str, str]:
        """The settings of a checker in this world, which has its own role."""
        return self.environment | {
            "OUTBOX_DATABASE_URL": as_role(self.database_url, "outbox_checker")
        }

    def builder(self) -> RelayBuilder:
        """Return a process's builder of relays."""
        settings = load_settings(self.checker_environment)
        return RelayBuilder(settings, self.metrics, self.progress_topic, batch_max=self.batch_max)

    def relay(self) -> ShardRelay:
        """Open a relay of the shard, as another process would; it is closed after the test."""
        relay = self.builder().open(SHARD)
        self.opened.append(relay)
        return relay

    def relay_again(self) -> ShardRelay:
        """Close every relay and open another."""
        for relay in self.opened:
            relay.close()
        return self.relay()

    def resolve(self, way: HaltResolution) -> dict[str, object]:
        """Decide on behalf of an operator how a halted shard goes on."""
        settings = load_settings(self.environment)
        action = OperatorAction(operator="tester", reason="a test", key_id=None)
        return ShardResolution(settings, SHARD, self.progress_topic).resolve(way, action)

    def terminate_holder(self) -> None:
        """End the session that holds the shard."""
        self.connection.execute(HOLDER_ENDED, (LOCK_SPACE, SHARD))

    @contextmanager
    def process(self, failpoints: str = "") -> Iterator[subprocess.Popen[str]]:
        """Run a relay of the shard as a process; it is killed at the end of the block."""
        asked = {
            "environment": {**self.checker_environment, "OUTBOX_FAILPOINTS": failpoints},
            "progress_topic": self.progress_topic,
            "shard": SHARD,
            "batch_max": self.batch_max,
        }
        relay = [sys.executable, "-m", RELAY]
        command = [*relay, json.dumps(asked)]
        with subprocess.Popen(
            command, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def message(self, value: bytes = b"v", key: bytes | None = b"key", **fields: Any) -> Message:
        """Return a message for the world's topic."""
        template = register(self.connection, self.topic)
        return replace(template, topic=self.topic, key=key, value=value, **fields)

    def commit(self, *messages: Message) -> list[HalfId]:
        """Store and commit messages in one flush, all in the shard whatever their key."""
        return commit_directly(self.connection, messages, shard=SHARD)

    def commit_values(self, *values: bytes) -> list[HalfId]:
        """Store and commit one message per value."""
        template = self.message()
        return self.commit(*(replace(template, value=value) for value in values))

    def records(self, expected: int) -> list[Record]:
        """Return the topic's records for a read_committed consumer."""
        return committed_records(self.bootstrap_servers, self.topic, expected)

    def next_batch(self) -> str:
        """Return the name of the shard's next batch, as its records' headers have it."""
        stored = self.one("SELECT batch_no FROM outbox.progress WHERE name = %s", f"relay:{SHARD}")
        return f"{SHARD}.{(stored or 0) + 1}"

    def ask(self, question: Callable[[Pool], Awaitable[Result]]) -> Result:
        """Put a question to the world's database as a program with an event loop does."""

        async def asked() -> Result:
            async with make_pool(self.database_url, "test", pool_max=2) as pool:
                return await question(pool)

        return asyncio.run(asked())

    def status(self, half_id: HalfId) -> MessageStatus | None:
        """Return the status of a message that a look-up shows; None if it is unknown."""
        return self.ask(lambda pool: statuses_now(pool, [half_id])).get(half_id)

    def log_length(self) -> int:
        """Return how many offsets the topic's first partition has, also of aborted transactions."""
        reading = {"bootstrap.servers": self.bootstrap_servers, "group.id": "end", "log_level": 0}
        with closing(Consumer({**reading, "isolation.level": "read_uncommitted"})) as consumer:
            start, end = consumer.get_watermark_offsets(TopicPartition(self.topic, 0))
            return int(end - start)

    def values(self, expected: int) -> list[bytes | None]:
        """Return the values of those records."""
        return [record.value for record in self.records(expected)]

    def one(self, statement: str, *parameters: object) -> Any:
        """Return the first column of the first row."""
        row = self.connection.execute(statement.encode(), parameters).fetchone()
        return None if row is None else row[0]


@contextmanager
def open_world(database_url: str, bootstrap_servers: str) -> Iterator[RelayWorld]:
    """Yield an installation with new topics; relays opened through it are closed at the end."""
    with connect(database_url, "test") as connection:
        made = RelayWorld(
            database_url,
            bootstrap_servers,
            make_topic(bootstrap_servers, partitions=1),
            make_topic(bootstrap_servers, partitions=SHARDS),
            connection,
        )
        yield made
        for relay in made.opened:
            relay.close()


def drain(relay: ShardRelay, rounds: int = ROUNDS) -> RelayRound:
    """Continue until the relay waits for commits or has halted; AssertionError if it never does."""
    pause = threading.Event()
    for _ in range(rounds):
        done = relay.run_once()
        if done.until_commits or done.phase is Phase.HALT:
            return done
        pause.wait(min(done.rest_seconds, 0.2))
    raise AssertionError(f"the relay is still in {done.phase}")


def first_batch(relay: ShardRelay, rounds: int = ROUNDS) -> int:
    """Continue until the relay has committed a batch; return how many records it published."""
    pause = threading.Event()
    for _ in range(rounds):
        done = relay.run_once()
        if done.published:
            return done.published
        pause.wait(min(done.rest_seconds, 0.2))
    raise AssertionError("no batch was committed")


def until(happened: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait for something with a bound."""
    pause, clock = threading.Event(), SystemClock()
    deadline = clock.monotonic() + seconds
    while not happened():
        assert clock.monotonic() < deadline, "it did not happen in time"
        pause.wait(0.02)
