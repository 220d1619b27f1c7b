"""Relays without the CLEAN rule: they reuse a handle that may have sent EndTxn twice."""

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
from outbox.kafka.client_config import (
    admin_client,
    consumer_config,
    producer_config,
    transactional_id,
)
from outbox.kafka.progress_log import KafkaProgressLog
from outbox.kafka.publisher import KafkaPublisher
from outbox.messages.record import Record
from outbox.postgres.relay.commit_log import PostgresCommitLog
from outbox.relay.ports import DeliveryReport
from outbox.relay.protocol import actions, answers
from outbox.telemetry.metrics import Metrics

FLUSH_SECONDS: Final = 10.0
PATIENCE_SECONDS: Final = 8.0
"""Shorter than the transaction timeout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """A point in a batch at which the publisher waits until it may continue."""

    after_first: bool
    """after the first record; otherwise after the last one, before the manifest"""
    reached: threading.Event = field(default_factory=threading.Event)
    go_on: threading.Event = field(default_factory=threading.Event)


class StagedPublisher(KafkaPublisher):
    """A correct publisher that a test can stop inside a batch, or let fail once."""

    stop: Stop | None = None
    unlucky = False

    def publish(
        self, records: Sequence[Record], manifest: bytes, at_ms: int = 0, *, apart: bool = False
    ) -> DeliveryReport:
        """Publish; wait at the stop if there is one; report one failure if asked to."""
        if self.stop is not None and self.stop.after_first:
            records = _Interrupted(records, self._wait)
        delivery = super().publish(records, manifest, at_ms, apart=apart)
        unlucky, self.unlucky = self.unlucky, False
        return delivery._replace(good=0) if unlucky else delivery

    def _produce_manifest(self, *arguments: Any) -> None:
        self._wait()
        super()._produce_manifest(*arguments)

    def _wait(self) -> None:
        stop, self.stop = self.stop, None
        if stop is not None:
            self._open().flush(FLUSH_SECONDS)
            stop.reached.set()
            stop.go_on.wait(PATIENCE_SECONDS)


class AbortingPublisher(StagedPublisher):
    """Aborts a failed batch and reuses the same handle, as Kafka's examples do."""

    def fence(self, installation: UUID) -> None:
        """Keep the handle if there is one."""
        if self._handle is None:
            super().fence(installation)

    def drop(self) -> None:
        """Abort and keep the handle; drop it only if the abort fails."""
        if self._handle is not None:
            with suppress(KafkaException):
                self._handle.abort_transaction(FLUSH_SECONDS)
                return
        super().drop()


class TrustingRelay(ShardRelay):
    """Takes every commit for clean, whatever time it took."""

    def _performed(self, plan: tuple[actions.Action, ...]) -> answers.Answer:
        answer = super()._performed(plan)
        return replace(answer, seconds=0.0) if isinstance(answer, answers.CommitEnded) else answer


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayPlace:
    """The stores and the shard of a relay."""

    database_url: str
    bootstrap_servers: str
    progress_topic: str
    shard: int

    def open(
        self, relay: type[ShardRelay], publisher: type[StagedPublisher]
    ) -> tuple[ShardRelay, StagedPublisher]:
        """Return a new relay of these classes, and its publisher."""
        clock, metrics = SystemClock(), Metrics()
        made = publisher(self._producer, self.shard, self.progress_topic)
        consumer = consumer_config(self.bootstrap_servers, {})
        admin = admin_client(self.bootstrap_servers, {})
        opened = relay(
            self.shard,
            PostgresCommitLog(self.database_url, self.shard, batch_max=100, owner="control"),
            made,
            KafkaProgressLog(admin, consumer, self.shard, topic=self.progress_topic),
            clock,
            RelayObserver(metrics, clock),
            PublishSlots(),
        )
        return opened, made

    def _producer(self, installation: UUID) -> dict[str, Any]:
        name = transactional_id(installation, self.shard)
        return producer_config(self.bootstrap_servers, {}, name)


class _Interrupted(list[Record]):
    """Records with a wait after the first one."""

    def __init__(self, records: Sequence[Record], wait: Callable[[], None]) -> None:
        super().__init__(records)
        self._wait_between = wait

    def __iter__(self) -> Iterator[Record]:
        """Yield the first record, wait, then yield the others."""
        for place, record in enumerate(super().__iter__()):
            if place == 1:
                self._wait_between()
            yield record
