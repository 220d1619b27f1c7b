"""A common wrong relay: publishes with an idempotent producer and then stores its position.

After a crash it publishes again what it had not stored yet, after newer records.
"""

from __future__ import annotations

import os
import threading
from time import monotonic
from typing import Final

import psycopg
from confluent_kafka import Producer

from checker.__main__ import main as run_checker
from outbox.errors import DatabaseUnavailable
from outbox.messages.manifest import Position
from outbox.messages.message_id import SHARDS
from outbox.messages.record import record_of
from outbox.postgres.relay.commit_log import PostgresCommitLog
from outbox.postgres.sessions.connections import connect
from outbox.settings.catalogue import Settings
from outbox.settings.environment import load_settings

OTHERS: Final = ["--only", "check,sweep"]
POLL_SECONDS: Final = 0.02
MARK_SECONDS: Final = 0.5
BATCH: Final = 500
MARKED: Final = "SELECT position, position_n FROM outbox.progress WHERE name = %s"
MARK: Final = (
    "INSERT INTO outbox.progress (name, position, position_n, owner) VALUES (%s, %s, %s, %s)"
    " ON CONFLICT (name) DO UPDATE SET position = EXCLUDED.position,"
    " position_n = EXCLUDED.position_n, owner = EXCLUDED.owner"
)


def main() -> int:
    """Run the checker's other tasks and this relay for every shard."""
    settings = load_settings()
    producer = Producer(
        {
            "bootstrap.servers": settings.required_bootstrap_servers(),
            "enable.idempotence": True,
            "partitioner": "murmur2_random",
        }
    )
    for shard in range(SHARDS):
        relay = MarkingRelay(settings, producer, shard)
        threading.Thread(target=relay.run, daemon=True).start()
    return run_checker(OTHERS)


class MarkingRelay:
    """The loop of one shard."""

    def __init__(self, settings: Settings, producer: Producer, shard: int) -> None:
        self._producer, self._shard = producer, shard
        self._url = settings.required_database_url()
        self._owner = f"control:{os.getpid()}"
        self._at = Position(0, 0)
        self._marked, self._batch = monotonic(), 0

    def run(self) -> None:
        """Relay until the end; start again when PostgreSQL was unavailable."""
        pause = threading.Event()
        while True:
            log = PostgresCommitLog(self._url, self._shard, batch_max=BATCH, owner=self._owner)
            try:
                self._relay(log, pause)
            except (DatabaseUnavailable, psycopg.Error):
                pause.wait(1.0)
            finally:
                log.close()

    def _relay(self, log: PostgresCommitLog, pause: threading.Event) -> None:
        while not log.try_lock():
            pause.wait(0.5)
        self._at = self._marked_at()
        while True:
            if not self._publish(log):
                self._mark()
                pause.wait(POLL_SECONDS)
            elif monotonic() - self._marked > MARK_SECONDS:
                self._mark()

    def _publish(self, log: PostgresCommitLog) -> int:
        commits = log.read(self._at)
        self._batch += 1
        for index, message in enumerate(commits.messages):
            record = record_of(message, f"{self._shard}.{self._batch}.{index}")
            self._producer.produce(
                record.topic, value=record.value, key=record.key, headers=list(record.headers)
            )
        self._producer.flush(10.0)
        self._at = commits.to
        return len(commits.messages)

    def _marked_at(self) -> Position:
        with connect(self._url, "control") as connection:
            row = connection.execute(MARKED, [f"relay:{self._shard}"]).fetchone()
        return Position(*row) if row else Position(0, 0)

    def _mark(self) -> None:
        self._marked = monotonic()
        with connect(self._url, "control") as connection:
            name = f"relay:{self._shard}"
            connection.execute(MARK, [name, self._at.xid, self._at.n, self._owner])
