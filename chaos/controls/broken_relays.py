"""Relays without the CLEAN rule: they go on with a handle that may have sent EndTxn twice."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final
from uuid import UUID

from confluent_kafka import KafkaException

from checker.relay.observer import RelayObserver
from checker.relay.publish_slots import PublishSlots
from checker.relay.shard_relay import ShardRelay
from outbox.clock import SystemClock
from outbox.kafka.client_config import consumer_config, producer_config, transactional_id
from outbox.kafka.progress_log import KafkaProgressLog, admin_client
from outbox.kafka.publisher import KafkaPublisher
from outbox.messages.record import Record
from outbox.postgres.relay.commit_log import PostgresCommitLog
from outbox.relay.ports import Delivery
from outbox.relay.protocol import actions as do
from outbox.relay.protocol import answers as came
from outbox.telemetry.metrics import Metrics

FLUSH_SECONDS: Final = 10.0
PATIENCE_SECONDS: Final = 8.0
"""Less than a transaction may last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """A place in a batch at which its publisher waits to be told to go on."""

    after_first: bool
    """after the first record; else after all of them, before the manifest"""
    reached: threading.Event = field(default_factory=threading.Event)
    go_on: threading.Event = field(default_factory=threading.Event)


class StagedPublisher(KafkaPublisher):
    """A sound publisher that a test may stop amid a batch, or make give one up."""

    stop: Stop | None = None
    unlucky = False

    def publish(self, records: Sequence[Record], at_ms: int = 0) -> Delivery:
        """Publish; stop where told, or say once that it failed."""
        stop, self.stop = self.stop, None
        if stop is not None and stop.after_first:
            interrupted = _Interrupted(records, lambda: self._wait(stop))
            return super().publish(interrupted, at_ms)
        delivery = super().publish(records, at_ms)
        if stop is not None:
            self._wait(stop)
        unlucky, self.unlucky = self.unlucky, False
        return delivery._replace(good=0) if unlucky else delivery

    def _wait(self, stop: Stop) -> None:
        self._open().flush(FLUSH_SECONDS)
        stop.reached.set()
        stop.go_on.wait(PATIENCE_SECONDS)


class AbortingPublisher(StagedPublisher):
    """Aborts what it gives up and goes on with the same handle, as Kafka's examples do."""

    def fence(self, installation: UUID) -> None:
        """Keep the handle, if there is one."""
        if self._handle is None:
            super().fence(installation)

    def drop(self) -> None:
        """Abort and keep the handle; forget it only if that fails."""
        if self._handle is not None:
            with suppress(KafkaException):
                self._handle.abort_transaction(FLUSH_SECONDS)
                return
        super().drop()


class TrustingRelay(ShardRelay):
    """Takes every commit for a clean one, however long it took."""

    def _performed(self, plan: tuple[do.Action, ...]) -> came.Answer:
        answer = super()._performed(plan)
        return replace(answer, seconds=0.0) if isinstance(answer, came.CommitEnded) else answer


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayPlace:
    """Where a relay works."""

    database_url: str
    bootstrap_servers: str
    progress_topic: str
    shard: int

    def open(
        self, relay: type[ShardRelay], publisher: type[StagedPublisher]
    ) -> tuple[ShardRelay, StagedPublisher]:
        """Return a relay of these kinds that holds nothing yet, and its publisher."""
        clock = SystemClock()
        made = publisher(self._producer, self.shard, self.progress_topic)
        consumer = consumer_config(self.bootstrap_servers, {})
        admin = admin_client(self.bootstrap_servers, {})
        opened = relay(
            self.shard,
            PostgresCommitLog(self.database_url, self.shard, batch_max=100, owner="control"),
            made,
            KafkaProgressLog(admin, consumer, self.shard, topic=self.progress_topic),
            clock,
            RelayObserver(Metrics(), clock),
            PublishSlots(clock),
        )
        return opened, made

    def _producer(self, installation: UUID) -> dict[str, Any]:
        name = transactional_id("outbox", installation, self.shard)
        return producer_config(self.bootstrap_servers, {}, name)


class _Interrupted(list[Record]):
    """Records of which only the first comes at once."""

    def __init__(self, records: Sequence[Record], wait: Callable[[], None]) -> None:
        super().__init__(records)
        self._wait_between = wait

    def __iter__(self) -> Iterator[Record]:
        """Give the first record, wait, give the others."""
        for place, record in enumerate(super().__iter__()):
            if place == 1:
                self._wait_between()
            yield record
