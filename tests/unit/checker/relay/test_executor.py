"""The relay reads the two stores in the safe order, and serves its producer in each round."""

from __future__ import annotations

from typing import Any, cast

from checker.relay.executor import RelayExecutor, RelayStores
from checker.relay.observer import RelayObserver
from checker.relay.publish_slots import PublishSlots
from checker.relay.shard_relay import ShardRelay
from outbox.clock import SystemClock
from outbox.messages.manifest import Position
from outbox.relay.protocol.actions import ReadBounds
from outbox.relay.protocol.answers import Bounds
from outbox.relay.protocol.state import Cursor, Phase, Progress, Relay
from outbox.telemetry.metrics import Metrics


class GrowingStores:
    """Both stores of a shard whose owner publishes one manifest whenever somebody looks."""

    def __init__(self) -> None:
        self.manifests = 0
        self.served = 0

    def progress(self) -> Progress:
        self.manifests += 1
        return Progress(Cursor(Position(1, 1), self.manifests, self.manifests, 0, 1), None, None)

    def bounds(self) -> tuple[int, int]:
        self.manifests += 1
        return 0, self.manifests

    def try_lock(self) -> bool:
        return False

    def serve(self) -> None:
        self.served += 1


def test_the_row_is_never_ahead_of_the_log_while_another_owner_works() -> None:
    """The row first: read last, it could lie beyond the end and halt a healthy shard."""
    stores: Any = GrowingStores()
    work = RelayExecutor(RelayStores(*[stores] * 3), SystemClock(), cast(Any, None))
    answer = work.perform(Relay(shard=0, phase=Phase.REPLAY), (ReadBounds(),))
    assert isinstance(answer, Bounds)
    assert answer.progress is not None
    assert answer.progress.cursor is not None
    assert answer.progress.cursor.manifest_offset <= answer.end


def test_each_round_takes_what_the_producer_has_noted() -> None:
    """An idle producer keeps its notes of lost connections for as long as Kafka is away."""
    stores: Any = GrowingStores()
    clock = SystemClock()
    observer = RelayObserver(Metrics(), clock)
    relay = ShardRelay(0, RelayStores(*[stores] * 3), clock, observer, PublishSlots())
    relay.run_once()
    assert stores.served == 1
