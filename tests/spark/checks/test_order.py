"""Order and places against a quadratic oracle, on random histories of a few messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from outbox.messages.manifest import START, Entry, Kind, Manifest, Position, encode
from outbox.messages.message_id import SHARDS, HalfId, Nonce, message_id_of
from spark.checks import order
from spark.columns import manifests, schemas
from spark.columns.frames import Frames, Mode
from spark.compare import bucket_checksums, matches
from spark.cut.reader import commit_layout, place_records
from tests.spark.fixtures_log_rows import log
from tests.spark.fixtures_markers import ON_SPARK

pytestmark = ON_SPARK

A_FLUSH: Final = 3
"""Commits of one row of the commit log; a batch has two rows, less the skipped."""
COMMITS = pa.schema(
    [
        *(("shard", pa.int32()), ("xid", pa.int64()), ("size", pa.int64())),
        ("committed_at", pa.timestamp("us", "UTC")),
        ("half_ids", pa.list_(pa.int64())),
        ("content_digests", pa.list_(pa.int64())),
    ]
)
RECORDS = pa.schema(
    [
        *(("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64())),
        *(("published_at", pa.timestamp("us", "UTC")), ("message_id", pa.string())),
        *(("half_id", pa.int64()), ("shard", pa.int32()), ("batch_no", pa.int64())),
        *(("index", pa.int32()), ("redriven", pa.bool_()), ("digest", pa.int64())),
        *(("key_hash", pa.int64()), ("home", pa.int32())),
    ]
)


@dataclass(frozen=True)
class Drawn:
    """One committed message: its key, how the manifest lists it, and its records."""

    key: int | None
    status: str
    """P, S (Kafka had it before), or a blank where the manifest lacks it."""
    copies: tuple[tuple[int, int, str], ...]
    """Of each record: partition, what sorts it in the log, and what its header names."""


HEADERS: Final = ("right", "right", "right", "right", "other index", "other batch", "absent")
MESSAGES = st.builds(
    Drawn,
    key=st.sampled_from((1, 1, 2, None)),
    status=st.sampled_from("PPPPPPS "),
    copies=st.lists(
        st.tuples(st.integers(0, 1), st.integers(0, 20), st.sampled_from((*HEADERS, "redriven"))),
        max_size=3,
    ).map(tuple),
)
HISTORIES = st.lists(
    st.lists(MESSAGES, min_size=1, max_size=8), min_size=SHARDS, max_size=SHARDS
).filter(lambda each: sum(len(m.copies) for some in each for m in some) > 2 * SHARDS)
"""Of each shard one; without the simplest, with which Hypothesis begins."""


@dataclass(frozen=True)
class Row:
    """A record in its topic."""

    number: int
    partition: int
    offset: int
    named: tuple[int, int] | None
    redriven: bool


class History:
    """What one shard committed and what is in its topic."""

    def __init__(self, shard: int, drawn: Sequence[Drawn]) -> None:
        self.shard, self.drawn = shard, drawn
        self.topic = f"t{shard}"
        self.ids = [HalfId(n + 1 << 15 | shard) for n in range(len(drawn))]
        self.rows = list(self._rows())

    def position(self, number: int) -> Position:
        """Return the position of a message in the commit log."""
        return Position(10 + number // A_FLUSH, number % A_FLUSH + 1)

    def batch(self, number: int) -> int:
        """Return the batch of a message."""
        return 1 + number // (2 * A_FLUSH)

    def members(self, batch: int) -> list[int]:
        """Return the messages that a batch's manifest lists."""
        numbers = range(len(self.drawn))
        return [n for n in numbers if self.batch(n) == batch and self.drawn[n].status != " "]

    def place(self, number: int) -> tuple[int, int]:
        """Return the batch and index that the record of a message must name."""
        batch = self.batch(number)
        members, start = self.members(batch), (batch - 1) * 2 * A_FLUSH
        whole = len(members) == min(2 * A_FLUSH, len(self.drawn) - start)
        if whole or number not in members:
            return batch, number - start
        return batch, members.index(number)

    def manifests(self) -> list[bytes]:
        """Return the manifests of the shard."""
        last = self.batch(len(self.drawn) - 1)
        return [self._manifest(batch, batch == last) for batch in range(1, last + 1)]

    def oracle(self) -> dict[HalfId, str]:
        """Return what is wrong with which message, by looking at every pair of records."""
        firsts: dict[tuple[int, int], int] = {}
        for row in self.rows:
            if not row.redriven and self.drawn[row.number].status != "S":
                firsts.setdefault((row.number, row.partition), row.offset)
        found = {
            self.ids[n]: "POSITION_DRIFT/header" for n in range(len(self.drawn)) if self._drifts(n)
        }
        for (a, partition), offset in firsts.items():
            for (b, other), lower in firsts.items():
                same = partition == other and self.drawn[a].key == self.drawn[b].key is not None
                if same and a < b and offset > lower:
                    found[self.ids[a]] = "ORDER_INVERSION/key"
        return found

    def _drifts(self, number: int) -> bool:
        own = [row for row in self.rows if row.number == number and not row.redriven]
        if not own or self.drawn[number].status == "S":
            return False
        return not any(self._right(row) for row in own)

    def _right(self, row: Row) -> bool:
        batch, index = self.place(row.number)
        if row.named == (batch, index):
            return True
        start = (batch - 1) * 2 * A_FLUSH
        return row.named == (batch, row.number - start)

    def _rows(self) -> list[Row]:
        lying = sorted(
            (sorts, number, partition, named)
            for number, each in enumerate(self.drawn)
            for partition, sorts, named in each.copies
        )
        return [
            Row(number, partition, offset, self._named(number, named), named == "redriven")
            for offset, (_, number, partition, named) in enumerate(lying)
        ]

    def _named(self, number: int, named: str) -> tuple[int, int] | None:
        batch, index = self.place(number)
        other = {"other index": (batch, index + 7), "other batch": (batch % 2 + 1, index)}
        return None if named == "absent" else other.get(named, (batch, index))

    def _manifest(self, batch: int, is_last: bool) -> bytes:
        end = len(self.drawn) if is_last else batch * 2 * A_FLUSH
        begins = START if batch == 1 else self.position((batch - 1) * 2 * A_FLUSH - 1)
        entries = [(self._uuid(n).bytes, self.drawn[n].status) for n in self.members(batch)]
        return encode(
            Manifest(
                installation=UUID(int=7),
                shard=self.shard,
                gen=1,
                kind=Kind.BATCH,
                batch_no=batch,
                prev_crc=0,
                after=begins,
                to=self.position(end - 1),
                entries=tuple(Entry(each, status.encode()) for each, status in entries),
            )
        )

    def _uuid(self, number: int) -> UUID:
        return message_id_of(self.ids[number], Nonce(number))

    def commit_rows(self) -> list[dict[str, Any]]:
        """Return its rows of the commit log; a digest here is the half id."""
        flushes: dict[int, list[HalfId]] = {}
        for n, half_id in enumerate(self.ids):
            flushes.setdefault(self.position(n).xid, []).append(half_id)
        return [
            {"shard": self.shard, "xid": xid, "size": len(ids)}
            | {"half_ids": ids, "content_digests": ids}
            for xid, ids in flushes.items()
        ]

    def cut_row(self) -> dict[str, int]:
        """Return a cut that judges all of it."""
        cut = {"cut_batch": 100, "cut_xid": 100, "cut_n": 0, "base_xid": 0, "base_n": 0}
        return {"shard": self.shard, **cut}

    def record_rows(self) -> list[dict[str, Any]]:
        """Return its records as the comparison has them."""
        return [
            {"topic": self.topic, "partition": row.partition, "offset": row.offset}
            | {"message_id": str(self._uuid(row.number)), "half_id": self.ids[row.number]}
            | {"digest": self.ids[row.number], "key_hash": self.drawn[row.number].key}
            | {"shard": self.shard if row.named else None}
            | dict(zip(("batch_no", "index"), row.named or (None, None), strict=True))
            | {"redriven": row.redriven}
            for row in self.rows
        ]


@settings(
    max_examples=1,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(drawn=HISTORIES)
@pytest.mark.deep
def test_the_findings_equal_the_oracles_with_and_without_bucket_checksums(
    session: SparkSession, tmp_path_factory: pytest.TempPathFactory, drawn: list[list[Drawn]]
) -> None:
    histories = [History(shard, each) for shard, each in enumerate(drawn)]
    expected = {i: name for each in histories for i, name in each.oracle().items()}
    for mode in (Mode.FULL, Mode.TWO_LEVEL):
        folder = tmp_path_factory.mktemp("stage")
        assert judged(session, histories, mode, folder.as_uri()) == expected, mode


def judged(
    session: SparkSession, histories: list[History], mode: Mode, stage_uri: str
) -> dict[HalfId, str]:
    """Return the cause that each message is found with."""
    bodies = [
        {"partition": each.shard, "value": value}
        for each in histories
        for value in each.manifests()
    ]
    listed = manifests.with_prefix(log(session, *bodies))
    rows = _frame(session, [r for each in histories for r in each.commit_rows()], COMMITS)
    cuts = schemas.frame_of(session, [each.cut_row() for each in histories], schemas.SHARD_CUTS)
    layout = commit_layout(listed, rows, cuts, stage_uri)
    lying_rows = [r for each in histories for r in each.record_rows()]
    lying = _frame(session, lying_rows, RECORDS)
    marked = (each.withColumn("carried", F.lit(False)) for each in (layout.commits, lying))
    commits, records = next(marked), place_records(next(marked), cuts)
    frames = Frames(
        manifests=listed,
        listings=listed,
        segments=layout.segments,
        batches=layout.batches,
        commits=commits,
        records=records,
        size=len(lying_rows),
    )
    mismatch = bucket_checksums.mismatches(frames, mode, stage_uri, bucket_messages=1)
    paired = matches.matches_of(frames, mismatch, stage_uri)
    found = order.findings(paired.ranked, commits, records, listed, (), stage_uri)
    return {each.half_id: each.cause.value for each in found if each.half_id is not None}


def _frame(session: SparkSession, rows: list[dict[str, Any]], schema: Any) -> Any:
    return session.createDataFrame(pa.Table.from_pylist(rows, schema=schema))
