"""Faults of order and place, planted in both stores."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from outbox.messages.message import HalfMessage, Resolution
from outbox.messages.record import BATCH, MESSAGE_ID, Record
from spark.even.murmur2 import home_of
from tests.fixtures_records import header_in
from tests.spark.fixtures_outbox_writer import OutboxWriter

PARTITIONS: Final = 2
NOTE: Final = """
INSERT INTO outbox.publication_log
    (shard, to_xid, to_n, batch_no, from_xid, from_n, published_at, half_ids, partitions, offsets)
SELECT %s, xid, 1000, half_id, 0, 0, clock_timestamp(), %s::int8[], %s::int4[], %s::int8[]
FROM outbox.op_message WHERE half_id = %s"""


class Plant:
    """Plants each fault in a topic of its own."""

    def __init__(self, writer: OutboxWriter) -> None:
        self.writer = writer

    def topic(self, name: str) -> str:
        """Return the topic of a fault."""
        return f"{self.writer.prefix}-{name}"

    def everything(self) -> set[tuple[str, str]]:
        """Plant it all; return the cause and subject of each finding that must be made."""
        names = ("clean", "swapped", "headers", "split", "asked", "noted")
        self.writer.create_topics(*map(self.topic, names))
        self._clean()
        return {
            *self._swapped_records(),
            *self._swapped_headers(),
            *self._split_key(),
            *self._asked_partition(),
            *self._wrong_note(),
        }

    def _clean(self) -> None:
        self._commit(self._prepare("clean", 30))
        keyless = self._prepare("clean", 5, key=None)
        asked = [*self._prepare("clean", 2, key=b"asked", partition=0)]
        asked += self._prepare("clean", 2, key=b"asked", partition=1)
        self._commit([*keyless, *asked])
        self.writer.publish()

    def _swapped_records(self) -> set[tuple[str, str]]:
        """Publish the second of three records of a key before the first."""
        first, second, _ = halves = self._prepare("swapped", 3, key=b"one")
        self._commit([*halves, *self._prepare("swapped", 10)])
        kept: list[Record] = []

        def swap(record: Record) -> Iterable[Record]:
            if _id_of(record) == str(first.message_id):
                kept.append(record)
                return ()
            return (record, *kept) if _id_of(record) == str(second.message_id) else (record,)

        self.writer.publish(swap)
        return {("ORDER_INVERSION/key", str(first.message_id))}

    def _swapped_headers(self) -> set[tuple[str, str]]:
        """Publish two records of a key in their order, each with the other's batch header."""
        pair = self._prepare("headers", 2, key=b"one")
        without, fine = self._prepare("headers", 1, key=b"two"), self._prepare("headers", 1)
        self._commit([*pair, *without, *fine])
        ids = [str(half.message_id) for half in pair]

        def swap(record: Record) -> Iterable[Record]:
            if _id_of(record) in ids:
                shard, batch, index = header_in(record, BATCH).split(".")
                other = int(index) + (1 if _id_of(record) == ids[0] else -1)
                return (_with_batch(record, f"{shard}.{batch}.{other}"),)
            absent = _id_of(record) == str(without[0].message_id)
            return (_with_batch(record, None) if absent else record,)

        self.writer.publish(swap)
        return {("POSITION_DRIFT/header", str(half.message_id)) for half in (*pair, *without)}

    def _split_key(self) -> set[tuple[str, str]]:
        """Publish the last of three records of a key elsewhere than the others."""
        key = next(k for n in range(9) if home_of(k := b"k%d" % n) % PARTITIONS == 1)
        halves = self._prepare("split", 3, key=key)
        self._commit([*halves, *self._prepare("split", 10)])
        self._elsewhere(halves[-1], 0)
        return {("WRONG_PLACE/partition", self.topic("split"))}

    def _asked_partition(self) -> set[tuple[str, str]]:
        """Publish a record elsewhere than its producer asked for."""
        halves = self._prepare("asked", 2, partition=1)
        self._commit(halves)
        self._elsewhere(halves[0], 0)
        return {("WRONG_PLACE/partition", str(halves[0].message_id))}

    def _wrong_note(self) -> set[tuple[str, str]]:
        """Note the right place of one record, and a wrong one of another."""
        right, wrong = self._prepare("noted", 2, key=b"one", partition=0)
        self._commit([right, wrong])
        self.writer.publish()
        for half, offset in ((right, 0), (wrong, 7)):
            ids = (half.shard, [half.half_id], [0], [offset], half.half_id)
            self.writer.execute(NOTE, *ids)
        return {("WRONG_OFFSET/recorded", self.topic("noted"))}

    def _prepare(self, name: str, count: int, **fields: Any) -> list[HalfMessage]:
        return self.writer.prepare(self.topic(name), count, **fields)

    def _commit(self, halves: list[HalfMessage]) -> None:
        self.writer.end(halves, Resolution.COMMIT)

    def _elsewhere(self, half: HalfMessage, partition: int) -> None:
        def move(record: Record) -> Iterable[Record]:
            odd = _id_of(record) == str(half.message_id)
            return (record._replace(partition=partition) if odd else record,)

        self.writer.publish(move)


def _id_of(record: Record) -> str:
    return header_in(record, MESSAGE_ID)


def _with_batch(record: Record, batch: str | None) -> Record:
    kept = [(name, value) for name, value in record.headers if name != BATCH]
    if batch is not None:
        kept.insert(1, (BATCH, batch.encode()))
    return record._replace(headers=tuple(kept))
