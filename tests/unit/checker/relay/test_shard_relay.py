from __future__ import annotations

from typing import Any

from checker.relay.executor import RelayStores
from checker.relay.observer import RelayObserver
from checker.relay.publish_slots import PublishSlots
from checker.relay.shard_relay import ShardRelay
from outbox.clock import SystemClock
from outbox.messages.manifest import START, Position
from outbox.messages.message_id import message_id_bytes
from outbox.relay.protocol.answers import Commits
from outbox.relay.protocol.state import Cursor, Phase, Relay
from outbox.telemetry.metrics import Metrics
from tests.contract.fixtures_memory_kafka import MemoryKafka, MemoryProgressLog, MemoryPublisher
from tests.unit.checker.relay.fixtures_committed import SHARD, message_of
from tests.unit.outbox.relay.protocol.fixtures_steps import IDENTITY, INSTALLATION


class OneMessageRows:
    """A commit log with one message a row; it notes the free slots at each read and save."""

    def __init__(self, slots: PublishSlots) -> None:
        self._slots = slots
        self.free_slots: list[tuple[str, int]] = []

    def read(self, after: Position, most: int | None = None) -> Commits:
        """Return the message of the row after a position."""
        self.free_slots.append(("read", self._slots._free))
        message = message_of(after.xid + 1)
        ids = (message_id_bytes(message.half_id, message.nonce),)
        return Commits(Position(after.xid + 1, 1), ids, (message,), ages=(0.0, 0.0))

    def save(self, *_: object, **__: object) -> None:
        """Store nothing."""
        self.free_slots.append(("save", self._slots._free))


class ServedPublisher(MemoryPublisher):
    """Counts how often its notes were taken."""

    served = 0

    def serve(self) -> None:
        """Count the call."""
        self.served += 1


def running(slots: PublishSlots, rows: OneMessageRows) -> tuple[ShardRelay, ServedPublisher]:
    """Return a relay that owns its shard, and its producer."""
    kafka, clock, metrics = MemoryKafka(), SystemClock(), Metrics()
    publisher = ServedPublisher(kafka, SHARD)
    log: Any = rows
    relay = ShardRelay(
        SHARD,
        RelayStores(log, publisher, MemoryProgressLog(kafka, SHARD)),
        clock,
        RelayObserver(metrics, clock),
        slots,
    )
    publisher.fence(INSTALLATION)
    relay._state = Relay(
        shard=SHARD,
        phase=Phase.RUN,
        installation=INSTALLATION,
        identity=IDENTITY,
        cursor=Cursor(START, 0, 0, 0, 1),
    )
    return relay, publisher


def test_a_shard_has_a_slot_while_it_publishes_and_none_while_it_saves_its_progress() -> None:
    slots = PublishSlots()
    rows = OneMessageRows(slots)
    relay, _ = running(slots, rows)
    assert relay.run_once().published == 1
    assert rows.free_slots == [("read", 0), ("save", 1)]
    assert slots._free == 1


def test_each_round_takes_what_the_producer_has_noted() -> None:
    """An idle producer keeps its notes of lost connections for as long as Kafka is away."""
    slots = PublishSlots()
    relay, publisher = running(slots, OneMessageRows(slots))
    relay.run_once()
    assert publisher.served == 1
