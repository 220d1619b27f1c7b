"""The relay reads the two stores in the safe order, and logs as published what Kafka has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

from checker.relay.executor import RelayExecutor, RelayStores
from checker.relay.observer import RelayObserver
from outbox.clock import SystemClock
from outbox.messages.manifest import (
    PUBLISHED,
    START,
    Entry,
    Kind,
    Manifest,
    Position,
    crc_of,
    encode,
)
from outbox.messages.message_id import message_id_bytes
from outbox.messages.record import Record
from outbox.relay.protocol.actions import (
    Commit,
    Fence,
    Publish,
    ReadBounds,
    ReadCommits,
    SaveProgress,
)
from outbox.relay.protocol.answers import THIS_CLOCK, Bounds, Commits, Delivered, DeliveryReport
from outbox.relay.protocol.state import Cursor, Phase, Progress, Relay
from outbox.relay.protocol.takeover import FENCE_SECONDS
from outbox.telemetry.metrics import Metrics
from tests.contract.fixtures_memory_kafka import MemoryKafka, MemoryProgressLog, MemoryPublisher
from tests.fixtures_replacing import replace
from tests.unit.checker.relay.fixtures_committed import SHARD, message_of
from tests.unit.outbox.relay.protocol.fixtures_steps import IDENTITY, INSTALLATION

CLOCK_MS: Final = 1_700_000_000_000
"""The time of PostgreSQL, far from that of this machine."""


class GrowingStores:
    """Both stores of a shard whose owner publishes one manifest whenever somebody looks."""

    def __init__(self) -> None:
        self.manifests = 0

    def progress(self) -> Progress:
        self.manifests += 1
        return Progress(Cursor(Position(1, 1), self.manifests, self.manifests, 0, 1), None, None)

    def bounds(self) -> tuple[int, int]:
        self.manifests += 1
        return 0, self.manifests


def test_the_row_is_never_ahead_of_the_log_while_another_owner_works() -> None:
    """The row first: read last, it could lie beyond the end and halt a healthy shard."""
    stores: Any = GrowingStores()
    work = RelayExecutor(RelayStores(*[stores] * 3), SystemClock(), cast(Any, None))
    answer = work.perform(Relay(shard=0, phase=Phase.REPLAY), (ReadBounds(),))
    assert isinstance(answer, Bounds)
    assert answer.progress is not None
    assert answer.progress.cursor is not None
    assert answer.progress.cursor.manifest_offset <= answer.end


CREATED = Cursor(START, 0, 0, 0, 1)


class WrittenRow:
    """The commit log of a shard, one message a row, and what is saved as published."""

    def __init__(self) -> None:
        self.saved: list[tuple[int, int]] = []

    def keep_alive(self) -> None:
        """Do nothing: this session never ends."""

    def read(self, after: Position, most: int | None = None) -> Commits:
        """Return the message of the row after a position."""
        message = message_of(after.xid + 1)
        ids = (message_id_bytes(message.half_id, message.nonce),)
        return Commits(
            Position(after.xid + 1, 1), ids, (message,), ages=(0.0, 0.0), clock_ms=CLOCK_MS
        )

    def save(
        self, cursor: Cursor, identity: Any, published: Sequence[Delivered], **_: bool
    ) -> None:
        """Remember the batches and the xids that they end at."""
        self.saved += [(batch.batch_no, batch.to.xid) for batch, _ in published]


class TimedPublisher(MemoryPublisher):
    """Remembers the time of the records."""

    at_ms = THIS_CLOCK

    def publish(
        self,
        records: Sequence[Record],
        manifest: bytes,
        at_ms: int = THIS_CLOCK,
        *,
        apart: bool = False,
    ) -> DeliveryReport:
        self.at_ms = at_ms
        return super().publish(records, manifest, at_ms, apart=apart)


def batch_after(cursor: Cursor) -> Manifest:
    """Return the manifest of the batch that publishes the next row."""
    message = message_of(cursor.position.xid + 1)
    return Manifest(
        installation=INSTALLATION,
        shard=SHARD,
        gen=cursor.gen,
        kind=Kind.BATCH,
        batch_no=cursor.batch_no + 1,
        prev_crc=cursor.crc,
        after=cursor.position,
        to=Position(cursor.position.xid + 1, 1),
        entries=(Entry(message_id_bytes(message.half_id, message.nonce), PUBLISHED),),
    )


class Publishing:
    """A relay's executor on Kafka in memory, driven batch by batch."""

    def __init__(self) -> None:
        self.row = WrittenRow()
        rows: Any = self.row
        clock, metrics, kafka = SystemClock(), Metrics(), MemoryKafka()
        self.publisher = TimedPublisher(kafka, SHARD)
        self._executor = RelayExecutor(
            RelayStores(rows, self.publisher, MemoryProgressLog(kafka, SHARD)),
            clock,
            RelayObserver(metrics, clock),
        )
        self._state = Relay(
            shard=SHARD, phase=Phase.RUN, installation=INSTALLATION, identity=IDENTITY
        )
        self.fence()

    def fence(self) -> None:
        self._executor.perform(self._state, (Fence(0, FENCE_SECONDS),))

    def send(self, cursor: Cursor, *, commit: bool = True) -> Cursor:
        """Publish the row after a cursor; return where the chain continues if it is committed."""
        batch = batch_after(cursor)
        state = replace(self._state, cursor=cursor, batch=batch)
        ending = (Commit(),) if commit else ()
        plan = (ReadCommits(cursor.position), Publish(batch))
        self._executor.perform(state, (*plan, *ending))
        crc = crc_of(encode(batch))
        return Cursor(batch.to, cursor.manifest_offset + 1, batch.batch_no, crc, cursor.gen)

    def save(self, cursor: Cursor) -> None:
        self._executor.perform(self._state, (SaveProgress(cursor),))


def test_each_batch_between_two_saves_is_logged_as_published() -> None:
    relay = Publishing()
    cursor = CREATED
    for _ in range(3):
        cursor = relay.send(cursor)
    relay.save(cursor)
    assert relay.row.saved == [(1, 1), (2, 2), (3, 3)]
    relay.save(relay.send(cursor))
    assert relay.row.saved[3:] == [(4, 4)]


def test_an_aborted_batch_is_never_logged_as_published() -> None:
    relay = Publishing()
    first = relay.send(CREATED)
    relay.send(first, commit=False)
    relay.fence()
    relay.save(first)
    assert relay.row.saved == [(1, 1)]


def test_an_aborted_batch_is_not_logged_where_another_owner_used_its_number() -> None:
    relay = Publishing()
    first = relay.send(CREATED)
    relay.send(first, commit=False)
    relay.fence()
    relay.save(first._replace(position=Position(2, 2), batch_no=2, crc=0xAB))
    assert relay.row.saved == [(1, 1)]


def test_a_batch_in_doubt_is_logged_once_its_manifest_is_found_in_the_chain() -> None:
    relay = Publishing()
    first = relay.send(CREATED)
    in_doubt = relay.send(first, commit=False)
    relay.save(first)
    assert relay.row.saved == [(1, 1)]
    relay.save(in_doubt)
    assert relay.row.saved == [(1, 1), (2, 2)]


def test_a_record_has_the_time_of_postgresql() -> None:
    """Kafka refuses a record from far ahead, and the clock of this machine may be wrong."""
    relay = Publishing()
    relay.send(CREATED)
    assert relay.publisher.at_ms == CLOCK_MS
