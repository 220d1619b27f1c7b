"""Delivers a stale EndTxn: it is held and its connection cut, so that the client sends it again.

The stale copy reaches the broker while the next transaction has sent a part of its records.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any

from checker.relay.executor import RelayStores
from checker.relay.observer import RelayObserver
from checker.relay.publish_slots import PublishSlots
from checker.relay.shard_relay import ShardRelay
from outbox.clock import SystemClock
from outbox.kafka.client_config import (
    admin_client,
    consumer_config,
    producer_config,
)
from outbox.kafka.progress_log import KafkaProgressLog
from outbox.kafka.publisher import KafkaPublisher
from outbox.messages.record import Record
from outbox.postgres.relay.commit_log import PostgresCommitLog
from outbox.relay.protocol import answers
from outbox.telemetry.metrics import Metrics
from tests.fixtures_link import Link
from tests.fixtures_replacing import replace
from tests.fixtures_waiting import wait_for
from tests.integration.checker.relay.fixtures_relay import SHARD, RelayWorld

FLUSH_SECONDS = 10.0
PATIENCE_SECONDS = 8.0
"""Shorter than the transaction timeout."""
NEXT_BATCH = 3


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
    ) -> answers.DeliveryReport:
        """Publish; wait at the stop if there is one; report one failure if asked to."""
        if self.stop is not None and self.stop.after_first:
            records = _Interrupted(records, self._wait)
        delivery = super().publish(records, manifest, at_ms, apart=apart)
        unlucky, self.unlucky = self.unlucky, False
        return replace(delivery, good=0) if unlucky else delivery

    def _produce_manifest(self, *arguments: Any) -> None:
        self._wait()
        super()._produce_manifest(*arguments)

    def _wait(self) -> None:
        stop, self.stop = self.stop, None
        if stop is not None:
            self._open().flush(FLUSH_SECONDS)
            stop.reached.set()
            stop.go_on.wait(PATIENCE_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A relay, and where the stale EndTxn meets it."""

    gives_up: bool
    """The first transaction is aborted instead of committed."""
    after_first: bool
    """The stale frame comes after the first record of the next batch; otherwise the last."""

    def open(self, world: RelayWorld) -> tuple[ShardRelay, StagedPublisher]:
        """Return a new relay and its publisher."""
        brokers, clock, metrics = world.bootstrap_servers, SystemClock(), Metrics()
        publisher = StagedPublisher(
            partial(producer_config, brokers, {}),
            SHARD,
            world.progress_topic,
        )
        admin, consumer = admin_client(brokers, {}), consumer_config(brokers, {})
        manifests = KafkaProgressLog(admin, consumer, SHARD, world.progress_topic)
        log = PostgresCommitLog(world.database_url, SHARD, batch_max=100, owner="control")
        relay = ShardRelay(
            SHARD,
            RelayStores(log, publisher, manifests),
            clock,
            RelayObserver(metrics, clock),
            PublishSlots(),
        )
        return relay, publisher


def play(case: Case, world: RelayWorld, link: Link) -> int:
    """Let the relay publish message 0, then 1, then 2 to 4 in a batch that the stale frame meets.

    Returns the broker's answer to it: 0 means that it ended the wrong transaction.
    """
    relay, publisher = case.open(world)
    numbers = count()

    def commit(messages: int) -> None:
        world.commit_values(*(b"%d" % next(numbers) for _ in range(messages)))

    with _driven(relay) as driver:
        commit(1)
        wait_for(lambda: driver.published >= 1)
        link.hold_end_txn(f".{SHARD}.0")
        publisher.unlucky = case.gives_up
        commit(1)
        wait_for(link.has_held)
        wait_for(lambda: driver.published >= 2)
        stop = publisher.stop = Stop(after_first=case.after_first)
        commit(NEXT_BATCH)
        wait_for(stop.reached.is_set)
        error = link.deliver()
        stop.go_on.set()
        wait_for(lambda: driver.published >= 2 + NEXT_BATCH)
    return error


class _Driver(threading.Thread):
    """Runs a relay and counts what it has published by its own account."""

    def __init__(self, relay: ShardRelay) -> None:
        super().__init__()
        self._relay = relay
        self.published = 0
        self.stop = threading.Event()

    def run(self) -> None:
        """Run until asked to stop."""
        while not self.stop.is_set():
            done = self._relay.run_once()
            self.published += done.published
            self.stop.wait(min(done.rest_seconds, 0.02))
        self._relay.close()


@contextmanager
def _driven(relay: ShardRelay) -> Iterator[_Driver]:
    driver = _Driver(relay)
    driver.start()
    try:
        yield driver
    finally:
        driver.stop.set()
        driver.join()


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
