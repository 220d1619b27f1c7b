"""Histories as both stores have them: many at once, each on a shard of its own.

A run is given what the stores hold at its cut, by the very ranges that it asks for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Final
from uuid import UUID

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession

from outbox.messages.manifest import Entry, Manifest, Position, crc_of, encode
from outbox.messages.message import HalfMessage
from outbox.messages.message_id import (
    LOW_BITS,
    SHARDS,
    HalfId,
    Nonce,
    message_id_of,
    parse_message_id,
)
from outbox.reconciliation.log import LogRecord, Partition
from outbox.reconciliation.snapshot import (
    KnownHalf,
    RecordHold,
    RelayProgress,
    SnapshotIdentity,
)
from spark.columns import manifests, schemas
from spark.cut.cut_plan import LogCut, Range
from tests.fixtures_messages import make_message
from tests.spark.cut.fixtures_histories import (
    ABSENT,
    MESSAGES,
    Cut,
    History,
    Open,
    Written,
    open_at,
)

NOON: Final = datetime(2026, 1, 1, tzinfo=UTC)
TOPIC, PROGRESS = "points", "outbox.progress"
SHARD: Final = 5
OWN, OTHER = Nonce(1), Nonce(2)
LOG: Final = pa.schema([("partition", pa.int32()), ("offset", pa.int64()), ("value", pa.binary())])
RECORDS: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("published_at", pa.timestamp("us", "UTC")),
        ("message_id", pa.string()),
        ("half_id", pa.int64()),
        ("shard", pa.int32()),
        ("batch_no", pa.int64()),
        ("index", pa.int32()),
        ("redriven", pa.bool_()),
        ("repair", pa.string()),
        ("digest", pa.int64()),
        ("key_hash", pa.int64()),
        ("home", pa.int32()),
    ]
)
COMMITS: Final = pa.schema(
    [
        ("shard", pa.int32()),
        ("xid", pa.int64()),
        ("committed_at", pa.timestamp("us", "UTC")),
        ("size", pa.int64()),
        ("half_ids", pa.list_(pa.int64())),
        ("content_digests", pa.list_(pa.int64())),
        ("visible", pa.string()),
    ]
)


@dataclass(kw_only=True)
class Cell:
    """A history on a shard of its own, as both stores have it."""

    number: int
    history: History
    runs: int
    """The number of last runs that audit it; the last two have the same cut."""

    @property
    def shard(self) -> int:
        return self.number * SHARDS + SHARD

    def half_id(self, message: int) -> HalfId:
        return HalfId((1 + self.number * MESSAGES + message) << LOW_BITS | SHARD)

    def message_id(self, message: int, nonce: Nonce = OWN) -> UUID:
        return message_id_of(self.half_id(message), nonce)

    def cut(self, runs_left: int) -> Cut:
        """Return the cut of a run with this number still to come; the last one sees nothing new."""
        return self.history.cuts[-max(runs_left, 1)]

    def manifest_end(self, cut: Cut) -> int:
        return sum(each.at < cut.manifests for each in self.history.batches)

    def record_end(self, cut: Cut) -> int:
        return sum(each.at < cut.records for each in self.history.records)

    def open(self, runs_left: int) -> Open:
        """Return what a run with this number still to come must find, by counting."""
        return open_at(self.history, self.cut(runs_left))

    @cached_property
    def manifests(self) -> list[bytes]:
        """The relay's chain."""
        written: list[bytes] = []
        for each in self.history.batches:
            entries = tuple(Entry(self.message_id(m).bytes, status) for m, status in each.entries)
            manifest = Manifest(
                installation=UUID(int=1),
                shard=self.shard,
                gen=1,
                kind=each.kind,
                batch_no=each.batch_no,
                prev_crc=crc_of(written[-1]) if written else 0,
                after=each.after,
                to=each.to,
                entries=entries,
            )
            written.append(encode(manifest))
        return written

    def record(self, offset: int, written: Written) -> dict[str, Any]:
        """Return a row of the topic."""
        right = written.right and written.own
        return {
            "topic": TOPIC,
            "partition": self.number,
            "offset": offset,
            "published_at": NOON,
            "message_id": str(self.message_id(written.message, OWN if written.own else OTHER)),
            "half_id": self.half_id(written.message),
            "shard": None if written.batch_no is None else self.shard,
            "batch_no": written.batch_no,
            "index": None if written.batch_no is None else self._index(written),
            "redriven": written.redriven,
            "repair": "order" if written.redriven else None,
            "digest": self.digest(written.message) + (not right),
        }

    def _index(self, written: Written) -> int:
        """Return the place that a record names: its own, or the first one if it is forged."""
        batches = [each for each in self.history.batches if each.batch_no == written.batch_no]
        listed = [message for each in batches for message, _ in each.entries]
        return listed.index(written.message) if written.message in listed else 0

    def digest(self, message: int) -> int:
        return 10 * self.half_id(message)

    def flush(self, at: int, flush: Sequence[int], visible: str) -> dict[str, Any]:
        """Return a row of the commit log."""
        return {
            "shard": self.shard,
            "xid": at + 1,
            "committed_at": NOON,
            "size": len(flush),
            "half_ids": [self.half_id(each) for each in flush],
            "content_digests": [self.digest(each) for each in flush],
            "visible": visible,
        }

    def known(self, message: int, moment: int) -> KnownHalf:
        half = HalfMessage(
            half_id=self.half_id(message),
            nonce=OWN,
            message=make_message(topic=TOPIC),
            prepared_at=NOON,
            content_digest=self.digest(message),
        )
        return KnownHalf(half=half, parked=False, decision=self.history.decision(message, moment))


@dataclass(kw_only=True)
class Moment:
    """Both stores at the cut of one run, for Spark's reads and for lookups."""

    spark_session: SparkSession
    cells: Mapping[int, Cell]
    runs_left: int

    @property
    def identity(self) -> SnapshotIdentity:
        now = 100 - self.runs_left
        return SnapshotIdentity(exported_id="", visible=f"{now}:{now}:", taken_at=NOON)

    def log(self) -> LogCut:
        """Return the ends of the log."""
        ends = [
            (each, each.manifest_end(cut), each.record_end(cut))
            for each in self.cells.values()
            for cut in [each.cut(self.runs_left)]
        ]
        return LogCut(
            progress_topic=PROGRESS,
            manifests=tuple(
                Range(partition=Partition(PROGRESS, each.shard), start=0, end=end)
                for each, end, _ in ends
            ),
            records=tuple(
                Range(partition=Partition(TOPIC, each.number), start=0, end=end)
                for each, _, end in ends
            ),
        )

    def read_manifests(self, ranges: Iterable[Range]) -> DataFrame:
        rows = [
            {"partition": each.partition.number, "offset": at, "value": cell.manifests[at]}
            for each in ranges
            for cell in [self.cells[each.partition.number // SHARDS]]
            for at in range(each.start, each.end)
        ]
        return manifests.with_prefix(schemas.frame_of(self.spark_session, rows, LOG))

    def read_records(self, ranges: Iterable[Range]) -> DataFrame:
        rows = [
            cell.record(at, cell.history.records[at])
            for each in ranges
            for cell in [self.cells[each.partition.number]]
            for at in range(each.start, each.end)
        ]
        return schemas.frame_of(self.spark_session, rows, RECORDS)

    def read_commits(self, snapshot: SnapshotIdentity, after: Mapping[int, Position]) -> DataFrame:
        rows = [
            cell.flush(at, flush, snapshot.visible)
            for cell in self.cells.values()
            for at, flush in cell.history.flushes.items()
            if at < cell.cut(self.runs_left).decided and at not in cell.history.unlogged
            if cell.shard not in after or at + 1 >= after[cell.shard].xid
        ]
        return schemas.frame_of(self.spark_session, rows, COMMITS)

    def relay_progress(self) -> dict[int, RelayProgress]:
        return {
            each.shard: RelayProgress(each.history.last_batch(each.cut(self.runs_left).decided), 0)
            for each in self.cells.values()
        }

    def halves(self, half_ids: Sequence[HalfId]) -> dict[HalfId, KnownHalf]:
        asked = {each: self._message(each) for each in half_ids}
        return {
            each: cell.known(message, cell.cut(self.runs_left).decided)
            for each, (cell, message) in asked.items()
            if message != ABSENT
        }

    def retired_below(self) -> HalfId:
        return HalfId(0)

    def retired_leaves(self) -> frozenset[int]:
        return frozenset()

    def held_records(self, half_ids: Sequence[HalfId]) -> dict[HalfId, RecordHold]:
        asked = {each: self._hold(*self._message(each)) for each in half_ids}
        return {each: hold for each, hold in asked.items() if hold is not None}

    def recorded_places(self, half_ids: Sequence[HalfId]) -> dict[HalfId, Any]:
        return {}

    def already_published(self, half_ids: Sequence[HalfId]) -> frozenset[UUID]:
        return frozenset()

    def records(self, places: Collection[tuple[Partition, int]]) -> Sequence[LogRecord]:
        return []

    def cell_of(self, half_id: HalfId) -> int:
        return self._message(half_id)[0].number

    def cell_and_subject(self, subject: str) -> tuple[int, str]:
        """Return the cell of a finding's subject, and the subject as a history has it."""
        kind, _, rest = subject.partition(":")
        if kind == "record":
            _, partition, offset, _ = rest.split("/")
            return int(partition), f"record:{offset}"
        cell, message = self._message(parse_message_id(rest)[0])
        return cell.number, f"message:{message}"

    def _message(self, half_id: HalfId) -> tuple[Cell, int]:
        number, message = divmod((half_id >> LOW_BITS) - 1, MESSAGES)
        return self.cells[number], message

    def _hold(self, cell: Cell, message: int) -> RecordHold | None:
        state = cell.history.hold(message, cell.cut(self.runs_left).decided)
        if state is None:
            return None
        return RecordHold(
            publish_error="",
            held_at=NOON,
            waiting=1,
            released=state in ("released", "repaired"),
            dropped=state == "dropped",
            repair="order" if state == "repaired" else None,
        )


def cells_of(histories: Sequence[History]) -> list[Cell]:
    """Return each history twice: audited at all its cuts, and at the last one alone."""
    return [
        Cell(
            number=2 * number + whole, history=history, runs=1 + (1 if whole else len(history.cuts))
        )
        for number, history in enumerate(histories)
        for whole in (False, True)
    ]
