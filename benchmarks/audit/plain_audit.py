"""Audits a cut without Spark: reads both stores completely each time and compares them as sets.

It takes the cut like a run, with ``take_log_cut`` and an exported snapshot, and shares nothing else
with it: a Kafka client reads manifests and records, a session imports the snapshot.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from threading import Event
from typing import Any, Final

import psycopg
from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from outbox.clock import SystemClock
from outbox.kafka.log_reader import KafkaLogReader
from outbox.kafka.progress_topic import PROGRESS_TOPIC
from outbox.messages.manifest import START, Kind, Position, decode
from outbox.messages.message_id import HalfId, parse_message_id
from outbox.messages.record import MESSAGE_ID
from outbox.postgres.reconciliation.source import PostgresSource
from spark.cut.cut_capture import capture_log_cut
from spark.cut.cut_plan import LogCut, Range

COMMITS: Final = "SELECT shard, xid, half_ids FROM outbox.commit_log"
IMPORT: Final = "SET TRANSACTION SNAPSHOT '{}'"
READ_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The counts of one cut; the last four are zero unless there is a fault."""

    committed: int
    judged: int
    records: int
    ahead: int
    lost: int
    doubled: int
    unexpected: int
    gaps: int

    @property
    def clean(self) -> bool:
        """Return whether there is no fault and everything was read."""
        return not (self.lost or self.doubled or self.unexpected or self.gaps)


class PlainAudit:
    """A series of cuts of one installation."""

    def __init__(self, database_url: str, bootstrap_servers: str) -> None:
        self._database_url = database_url
        self._bootstrap_servers = bootstrap_servers
        self._source = PostgresSource(database_url)
        self._facts = KafkaLogReader(bootstrap_servers)

    def cut(self) -> Seen:
        """Cut both stores now and compare everything before the cut."""
        topics, clock = self._source.topics, SystemClock()
        log = capture_log_cut(self._facts, PROGRESS_TOPIC, topics, clock, Event().wait)
        with self._source.snapshot() as snapshot:
            commits = self._commits(snapshot.identity.exported_id)
        ends = self._ends(log)
        return compared(commits, ends, Counter(self._half_ids(log.records)), len(log.gaps))

    def _commits(self, exported_id: str) -> dict[HalfId, tuple[int, Position]]:
        """Return shard and position of every commit in the snapshot."""
        with psycopg.connect(self._database_url) as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.execute(IMPORT.format(exported_id).encode())
            rows = connection.execute(COMMITS.encode()).fetchall()
        return {
            half_id: (shard, Position(xid, n))
            for shard, xid, half_ids in rows
            for n, half_id in enumerate(half_ids, 1)
        }

    def _ends(self, log: LogCut) -> dict[int, Position]:
        """Return the last published position per shard, from its last manifest before the cut."""
        ends: dict[int, Position] = {}
        for message in self._read(log.manifests):
            value = message.value()
            assert isinstance(value, bytes)
            manifest = decode(value)
            if manifest.kind is Kind.BATCH:
                ends[manifest.shard] = max(ends.get(manifest.shard, START), manifest.to)
        return ends

    def _half_ids(self, ranges: Iterable[Range]) -> Iterator[HalfId]:
        for message in self._read(ranges):
            name: Any = dict(message.headers() or ())[MESSAGE_ID]
            yield parse_message_id(name.decode())[0]

    def _read(self, ranges: Iterable[Range]) -> Iterator[Message]:
        """Return the committed records of the ranges; a range may end with a marker."""
        waiting = {(r.partition.topic, r.partition.number): r for r in ranges if r.end > r.start}
        places = [TopicPartition(*place, each.start) for place, each in waiting.items()]
        deadline = time.monotonic() + READ_SECONDS
        with closing(Consumer(self._config())) as consumer:
            consumer.assign(places)
            while waiting:
                message = consumer.poll(1.0)
                assert time.monotonic() < deadline, f"{len(waiting)} partitions are not at the end"
                if message is None:
                    continue
                place = (message.topic() or "", message.partition() or 0)
                error, offset = message.error(), message.offset() or 0
                assert error is None or error.code() == KafkaError._PARTITION_EOF, error
                known = waiting.get(place)
                if known and error is None and offset < known.end:
                    yield message
                if known and (error or offset >= known.end - 1):
                    del waiting[place]

    def _config(self) -> dict[str, Any]:
        return {
            "bootstrap.servers": self._bootstrap_servers,
            "group.id": "plain-audit",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
        }


def compared(
    commits: dict[HalfId, tuple[int, Position]],
    ends: dict[int, Position],
    records: Counter[HalfId],
    gaps: int,
) -> Seen:
    """Compare the commits with the records, up to the last published position of each shard."""
    judged = {i for i, (shard, at) in commits.items() if at <= ends.get(shard, START)}
    return Seen(
        committed=len(commits),
        judged=len(judged),
        records=records.total(),
        ahead=sum(each in commits and each not in judged for each in records),
        lost=len(judged - records.keys()),
        doubled=sum(n > 1 for n in records.values()),
        unexpected=len(records.keys() - commits.keys()),
        gaps=gaps,
    )
