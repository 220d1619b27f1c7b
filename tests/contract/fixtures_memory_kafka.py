"""Kafka in memory, as the relay sees it: epochs, transactions, one manifest log per shard.

For tests, and as a readable model: it gives the same guarantees as the broker. A test can make it
lose an answer or be slow. Not for two threads at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from outbox.errors import InvalidManifest, KafkaUnavailable, PublisherFenced
from outbox.kafka.progress_log import Cluster, KafkaProgressLog
from outbox.kafka.publisher import KafkaPublisher
from outbox.messages.manifest import crc_of, decode
from outbox.messages.message_id import SHARDS
from outbox.messages.record import Record
from outbox.relay.protocol.answers import THIS_CLOCK, DeliveryReport
from outbox.relay.protocol.state import Found, Refusal, Refused

PARTITION: Final = 0
LARGEST_VALUE: Final = 1_048_588


@dataclass(slots=True)
class _Written:
    """A record in a log, and the result of its transaction (None: still open)."""

    record: Record
    transaction: int
    committed: bool | None = None


@dataclass(slots=True)
class MemoryKafka:
    """The broker, which all handles of all shards share."""

    cluster_id: str = "memory"
    topic_id: str = "progress-1"
    logs: dict[str, list[_Written]] = field(default_factory=lambda: defaultdict(list))
    epochs: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    transactions: int = 0

    def committed(self, topic: str) -> list[Record]:
        """Return the records for a read_committed consumer, up to the first open transaction."""
        seen = []
        for written in self.logs[topic]:
            if written.committed is None:
                break
            if written.committed:
                seen.append(written.record)
        return seen

    def fence(self, shard: int) -> int:
        """Abort the open transactions of older handles of the shard; return the new epoch."""
        self.epochs[shard] += 1
        for log in self.logs.values():
            for written in log:
                if written.committed is None and written.transaction % SHARDS == shard:
                    written.committed = False
        return self.epochs[shard]


class MemoryPublisher(KafkaPublisher):
    """The producer of one shard on a MemoryKafka."""

    def __init__(self, kafka: MemoryKafka, shard: int) -> None:
        self._kafka = kafka
        self._shard = shard
        self._epoch: int | None = None
        self._transaction: int | None = None

    def fence(self, installation: UUID, *_: float) -> None:
        """Create a new handle; older ones are refused from now on."""
        self._epoch = self._kafka.fence(self._shard)
        self._transaction = None

    def begin(self) -> None:
        """Begin a transaction."""
        self._check()
        self._kafka.transactions += 1
        self._transaction = self._kafka.transactions * SHARDS + self._shard

    def publish(
        self,
        records: Sequence[Record],
        manifest: bytes,
        at_ms: int = THIS_CLOCK,
        *,
        apart: bool = False,
    ) -> DeliveryReport:
        """Append the records and the manifest; a value that is too large is refused."""
        offsets: list[int] = []
        for place, record in enumerate(records):
            if len(record.value or b"") > LARGEST_VALUE:
                refusal = Refusal(place, "MSG_SIZE_TOO_LARGE", Refused.RECORD)
                return DeliveryReport(
                    place,
                    refusal if apart else None,
                    partitions=[PARTITION] * place,
                    offsets=offsets,
                )
            offsets.append(self._append(record))
        listed = self._append(Record(progress_log_of(self._shard), None, manifest, None, ()))
        partitions = [PARTITION] * len(records)
        return DeliveryReport(len(records), offset=listed, partitions=partitions, offsets=offsets)

    def commit(self) -> None:
        """Make the transaction's records visible, all at once."""
        transaction = self._current()
        for log in self._kafka.logs.values():
            for written in log:
                if written.transaction == transaction:
                    written.committed = True
        self._transaction = None

    def serve(self) -> None:
        """Do nothing: a handle in memory notes nothing."""

    def drop(self) -> None:
        """Drop the handle; its open transaction stays open until the next fence."""
        self._epoch = self._transaction = None

    def _append(self, record: Record) -> int:
        log = self._kafka.logs[record.topic]
        log.append(_Written(record, self._current()))
        return len(log) - 1

    def _current(self) -> int:
        self._check()
        if self._transaction is None:
            raise KafkaUnavailable("no transaction is open")
        return self._transaction

    def _check(self) -> None:
        if self._epoch is None:
            raise KafkaUnavailable("no handle is open")
        if self._epoch != self._kafka.epochs[self._shard]:
            raise PublisherFenced("a newer producer of the shard exists")


class MemoryProgressLog(KafkaProgressLog):
    """The manifests of one shard on a MemoryKafka."""

    def __init__(self, kafka: MemoryKafka, shard: int) -> None:
        self._kafka = kafka
        self._shard = shard

    def cluster(self) -> Cluster:
        """Return the identity of the cluster and the progress topic."""
        return Cluster(self._kafka.cluster_id, self._kafka.topic_id, SHARDS)

    def bounds(self) -> tuple[int, int]:
        """Return the start and end offset of the shard's log; aborted records count."""
        return 0, len(self._log())

    def read(self, first: int, end: int) -> tuple[tuple[Found, ...], bool]:
        """Read committed manifests up to the first open transaction."""
        found: list[Found] = []
        for offset, written in enumerate(self._log()[first:end], first):
            if written.committed is None:
                return tuple(found), False
            if written.committed:
                found.append(_found(offset, written.record.value or b""))
        return tuple(found), True

    def _log(self) -> list[_Written]:
        return self._kafka.logs[progress_log_of(self._shard)]


def progress_log_of(shard: int) -> str:
    """Return the name under which a shard's manifests are kept."""
    return f"outbox.progress-{shard}"


def _found(offset: int, value: bytes) -> Found:
    try:
        return Found(offset, decode(value), crc_of(value))
    except InvalidManifest:
        return Found(offset, None, 0)
