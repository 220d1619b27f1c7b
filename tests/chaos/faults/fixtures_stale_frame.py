"""Delivers a stale EndTxn: it is held and its connection cut, so that the client sends it again.

The stale copy reaches the broker while the next transaction has sent a part of its records.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Final, TypeVar

from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]

from checker.relay.shard_relay import ShardRelay
from outbox.kafka.client_config import admin_client
from tests.chaos.faults.fixtures_broken_relays import (
    AbortingPublisher,
    RelayPlace,
    StagedPublisher,
    Stop,
    TrustingRelay,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.fixtures_link import Link

STEP_SECONDS: Final = 60.0
LOOK_SECONDS: Final = 0.02
NEXT_BATCH: Final = 3
PERFORMED: Final = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StaleFrameCase:
    """A relay and the stale frame that it gets."""

    name: str
    relay: type[ShardRelay]
    publisher: type[StagedPublisher]
    gives_up: bool
    """The first transaction is aborted instead of committed."""
    after_first: bool
    """The stale frame arrives after the first record of the next batch; otherwise the last."""


SOUND_COMMIT: Final = StaleFrameCase(
    name="a commit sent twice, and the CLEAN rule",
    relay=ShardRelay,
    publisher=StagedPublisher,
    gives_up=False,
    after_first=True,
)
SOUND_GIVING_UP: Final = StaleFrameCase(
    name="a batch given up, and the CLEAN rule",
    relay=ShardRelay,
    publisher=StagedPublisher,
    gives_up=True,
    after_first=False,
)
TRUSTED_COMMIT: Final = StaleFrameCase(
    name="a commit sent twice, and its handle used again",
    relay=TrustingRelay,
    publisher=StagedPublisher,
    gives_up=False,
    after_first=True,
)
TRUSTED_ABORT: Final = StaleFrameCase(
    name="an abort sent twice, and its handle used again",
    relay=ShardRelay,
    publisher=AbortingPublisher,
    gives_up=True,
    after_first=False,
)


Found = TypeVar("Found")


class NotPlayed(RuntimeError):
    """A step of the case did not happen in time."""


def play(
    case: StaleFrameCase,
    place: RelayPlace,
    topic: str,
    link: Link,
    commit: Callable[[int], None],
) -> int:
    """Let the relay publish 1 + 1 + 3 messages and get the stale frame in the last batch.

    ``commit`` commits that many messages of the topic in the shard. Returns the broker's answer to
    the stale frame: 0 means that it ended the wrong transaction. Raises NotPlayed.
    """
    relay, publisher = place.open(case.relay, case.publisher)
    with _driven(relay) as driver:
        commit(1)
        _wait("a first batch", lambda: driver.published >= 1)
        link.hold_end_txn(f".{place.shard}")
        publisher.unlucky = case.gives_up
        commit(1)
        _wait("EndTxn to be held", link.has_held)
        _wait("EndTxn to be sent again", lambda: driver.published >= 2)
        stop = publisher.stop = Stop(after_first=case.after_first)
        commit(NEXT_BATCH)
        _wait("the next transaction", stop.reached.is_set)
        error = link.deliver()
        if error == PERFORMED:
            _wait("its markers", lambda: ends_agree(place.bootstrap_servers, topic))
        stop.go_on.set()
        _wait("the next batch", lambda: driver.published >= 2 + NEXT_BATCH)
    return error


def ends_agree(bootstrap_servers: str, topic: str) -> bool:
    """Return whether no transaction is open in the topic's first partition."""
    admin, partition = admin_client(bootstrap_servers, {}), TopicPartition(topic, 0)
    ends = [
        admin.list_offsets({partition: OffsetSpec.latest()}, isolation_level=level)  # type: ignore[no-untyped-call]
        for level in (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED)
    ]
    stable, last = (found[partition].result().offset for found in ends)
    return bool(stable == last)


class _Driver(threading.Thread):
    """Runs a relay and counts what it has published by its own account."""

    def __init__(self, relay: ShardRelay) -> None:
        super().__init__(name="control-relay")
        self._relay = relay
        self.published = 0
        self.stop = threading.Event()

    def run(self) -> None:
        """Run until asked to stop."""
        try:
            while not self.stop.is_set():
                done = self._relay.run_once()
                self.published += done.published
                self.stop.wait(min(done.rest_seconds, LOOK_SECONDS))
        finally:
            self._relay.close()


@contextmanager
def _driven(relay: ShardRelay) -> Iterator[_Driver]:
    driver = _Driver(relay)
    driver.start()
    try:
        yield driver
    finally:
        driver.stop.set()
        driver.join(STEP_SECONDS)


def _wait(what: str, look: Callable[[], Found | None]) -> Found:
    deadline, pause = monotonic() + STEP_SECONDS, threading.Event()
    while not (found := look()):
        if monotonic() > deadline:
            raise NotPlayed(f"timed out waiting for {what}")
        pause.wait(LOOK_SECONDS)
    return found
