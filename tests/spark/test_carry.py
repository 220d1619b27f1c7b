"""Any split of a history into runs ends with the findings that a look at all of it ends with.

A history has many messages that know nothing of each other, each with faults of its own at times of
their own, so that one history stands for thousands. What must be found is told by counting.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyspark.sql import DataFrame, SparkSession

from outbox.message import HalfMessage, Resolution
from outbox.message_id import HalfId, Nonce, message_id_of
from outbox.reconciliation import CarriedRow, KnownHalf, LogRecord, Partition
from outbox.settings import process_environment
from spark import carry, fold, reconcile, schemas
from spark.cut import LogCut, Range
from spark.frames import Frames
from spark.judge import Judgement, of_suspect
from spark.lookup import look_up
from spark.reading import beside
from tests.factories import make_message
from tests.spark.marks import ON_SPARK

pytestmark = ON_SPARK

NOON: Final = datetime(2026, 1, 1, tzinfo=UTC)
SHARD: Final = 5
MESSAGES, HOURS, LAG = 400, 12, 2
"""A message is published at most ``LAG`` after its commit, unless that is its fault."""
HISTORIES: Final = int(process_environment().get("OUTBOX_TEST_HISTORIES", "2"))
TOPIC: Final = Partition("points", 0)
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
        ("digest", pa.int64()),
        ("key_hash", pa.int64()),
    ]
)
COMMITS: Final = pa.schema(
    [
        ("shard", pa.int16()),
        ("xid", pa.int64()),
        ("committed_at", pa.timestamp("us", "UTC")),
        ("half_ids", pa.list_(pa.int64())),
        ("content_digests", pa.list_(pa.int64())),
    ]
)
MANIFESTS: Final = "intact boolean, entries int, body binary, shard int, batch_no bigint, kind int"


@dataclass
class Told:
    """One message: when it was decided and how, and when each of its records appeared."""

    half_id: HalfId
    decision: Resolution | None = Resolution.COMMIT
    decided: int = 0
    known: bool = True
    records: list[tuple[int, bool]] = field(default_factory=list)
    """Hour of each record, and whether its content is right."""
    odd: bool = False

    @property
    def message_id(self) -> str:
        return str(message_id_of(self.half_id, Nonce(1)))

    @property
    def digest(self) -> int:
        return self.half_id % 9973


def tell(number: int, random: Random) -> Told:
    """Return a message of some fate."""
    told = Told(HalfId((100 + number) << 15 | SHARD), decided=random.randint(1, HOURS - 1))
    usual = told.decided + random.randint(0, LAG)
    later = random.randint(told.decided, HOURS)
    before, whenever = random.randint(1, told.decided), random.randint(1, HOURS)
    fates: list[dict[str, Any]] = [
        {"records": []},
        {"records": [(later, True)]},
        {"records": [(usual, True), (usual, True)]},
        {"records": [(usual, True), (later, random.random() < 0.5)]},
        {"records": [(usual, False)]},
        {"records": [(usual, False), (later, True)]},
        {"records": [(usual, True)], "decision": None},
        {"records": [(usual, True)], "decision": None, "known": False},
        {"records": [(whenever, True)], "decision": Resolution.ROLLBACK},
        {"records": [(before, True)]},
        {"records": [(usual, True)], "odd": True},
    ]
    usually = {"records": [(usual, True)]}
    return replace(told, **random.choice([*fates, *[usually] * len(fates)]))


@dataclass
class History:
    """All that happens to both stores; an hour is a flush of the commit log, in two batches."""

    told: Sequence[Told]
    hour: int = 0
    """What a snapshot shows now."""

    def flush(self, hour: int) -> list[Told]:
        return [t for t in self.told if t.decision is Resolution.COMMIT and t.decided == hour]

    def batch_of(self, told: Told) -> int:
        flush = self.flush(told.decided)
        return 2 * told.decided + (told in flush and flush.index(told) >= len(flush) // 2)

    def log(self) -> list[dict[str, Any]]:
        """Return every record in the order of the log, with the hour in which it came."""
        rows = [
            {"hour": hour, "half_id": t.half_id, "message_id": t.message_id, "shard": SHARD}
            | {"batch_no": None if t.odd else self.batch_of(t), "index": 0, "redriven": False}
            | {"digest": t.digest + (not right), "published_at": NOON}
            for t in self.told
            for hour, right in t.records
        ]
        rows.sort(key=lambda row: (row["hour"], row["half_id"]))
        place = {"topic": TOPIC.topic, "partition": TOPIC.number}
        return [row | place | {"offset": at} for at, row in enumerate(rows)]

    def must_find(self) -> set[tuple[str, str]]:
        """Return what is wrong in the end, told by counting."""
        found: set[tuple[str, str]] = set()
        places: dict[str, list[int]] = {}
        for row in self.log():
            places.setdefault(row["message_id"], []).append(row["offset"])
        for t in self.told:
            subject, copies = f"message:{t.message_id}", len(t.records)
            if t.decision is not Resolution.COMMIT:
                where = [f"record:points/0/{at}" for at in places.get(t.message_id, ())]
                found |= {("unexpected", f"{each}/{t.message_id}") for each in where}
                continue
            found |= {("missing", subject)} if not copies else set()
            found |= {("duplicate", subject)} if copies > 1 else set()
            found |= (
                {("mismatch", subject)}
                if copies and not any(right for _, right in t.records)
                else set()
            )
        return found

    def halves(self, half_ids: Sequence[HalfId]) -> dict[HalfId, KnownHalf]:
        """Answer as the snapshot of this hour does."""
        return {t.half_id: self._known(t) for t in self.told if t.known and t.half_id in half_ids}

    def _known(self, told: Told) -> KnownHalf:
        half = HalfMessage(
            half_id=told.half_id,
            nonce=Nonce(1),
            message=make_message(topic=TOPIC.topic),
            prepared_at=NOON,
            content_digest=told.digest,
        )
        decision = told.decision if told.decided <= self.hour else None
        return KnownHalf(half=half, parked=False, decision=decision)

    def holds(self, half_ids: Sequence[HalfId]) -> dict[HalfId, Any]:
        return {}

    places = holds

    def already_published(self, half_ids: Sequence[HalfId]) -> frozenset[Any]:
        return frozenset()

    def records(self, places: Collection[tuple[Partition, int]]) -> Sequence[LogRecord]:
        return []


@dataclass
class Runs:
    """Runs one after the other over a history."""

    session: SparkSession
    history: History
    folder: Path
    seen: tuple[int, int] = (0, 0)
    read: int = 0
    carried: tuple[CarriedRow, ...] = ()
    started: bool = False
    found: set[tuple[str, str]] = field(default_factory=set)

    def run(self, hour: int, whole_flush: bool) -> None:
        """Judge up to the middle or the end of the flush that lies ``LAG`` hours back."""
        self.history.hour = hour
        cut = hour - LAG
        size = len(self.history.flush(cut))
        ahead = {"cut_batch": 2 * cut + whole_flush, "cut_xid": cut}
        n = size if whole_flush else size // 2
        frames = self._frames({**ahead, "cut_n": n}, hour)
        unsettled = reconcile.unsettled(frames.commits, reconcile.counted(frames.records))
        same = fold.open_ids(frames.commits, frames.records, self.folder.as_uri(), most_dirty=1.0)
        assert set(map(tuple, same.collect())) == set(map(tuple, unsettled.collect()))
        self._judge(frames, unsettled)
        open_ids = carry.kept_open(unsettled, HalfId(0), [])
        rows = carry.carried_rows(open_ids, frames, ())
        assert rows is not None
        self.carried, self.seen, self.started = rows, (cut, n), True
        self.read = sum(row["hour"] <= hour for row in self.history.log())

    def _judge(self, frames: Frames, unsettled: DataFrame) -> None:
        suspects = unsettled.where("suspect")
        rows = reconcile.evidence(suspects, frames.records, frames.listings).collect()
        judgement = Judgement(retired_below=HalfId(0), starts={}, continued=self.started)
        world: Any = self.history
        self.found = {
            (each.rule.kind.value, each.subject)
            for suspect in look_up(rows, world, world)
            for each in of_suspect(suspect, judgement)
        }

    def _frames(self, cut: dict[str, int], hour: int) -> Frames:
        seen = {"seen_xid": self.seen[0], "seen_n": self.seen[1]}
        row = {"shard": SHARD, "base_xid": 0, "base_n": 0, **cut, **seen}
        flushes = [(at, self.history.flush(at)) for at in range(self.seen[0], hour + 1)]
        commits = [
            {"shard": SHARD, "xid": at, "committed_at": NOON}
            | {"half_ids": [t.half_id for t in flush], "content_digests": [t.digest for t in flush]}
            for at, flush in flushes
        ]
        new = [r for r in self.history.log()[self.read :] if r["hour"] <= hour]
        return beside(
            carry.Carried(spark_session=self.session, rows=self.carried),
            self.session.createDataFrame([], MANIFESTS),
            schemas.frame_of(self.session, commits, COMMITS),
            schemas.frame_of(self.session, new, RECORDS),
            schemas.frame_of(self.session, [row], schemas.SHARD_CUTS),
            LogCut(
                progress_topic="outbox.progress",
                manifests=(),
                records=(Range(partition=TOPIC, start=0, end=len(self.history.log())),),
            ),
        )


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_any_split_of_a_history_into_runs_ends_with_what_counting_finds(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """And folding buckets first opens what one join of everything opens."""
    monkeypatch.setattr(fold, "BUCKET_MESSAGES", 4)
    random = Random(seed)
    history = History([tell(number, random) for number in range(MESSAGES)])
    expected = history.must_find()
    assert {kind for kind, _ in expected} == {"missing", "duplicate", "unexpected", "mismatch"}
    cuts = sorted(random.sample(range(LAG, HOURS + LAG - 1), random.randint(1, 2)))
    runs = Runs(session, history, tmp_path)
    for hour in cuts:
        runs.run(hour, whole_flush=random.random() < 0.5)
    runs.run(HOURS + LAG, whole_flush=True)
    assert runs.found == expected, f"cuts at {cuts}"


def test_one_run_over_a_whole_history_ends_with_what_counting_finds(
    session: SparkSession, tmp_path: Path
) -> None:
    random = Random(-1)
    history = History([tell(number, random) for number in range(MESSAGES)])
    runs = Runs(session, history, tmp_path)
    runs.run(HOURS + LAG, whole_flush=True)
    assert runs.found == history.must_find()


def test_what_cancels_in_one_lane_of_a_fold_shows_in_another(session: SparkSession) -> None:
    """A loss beside a duplicate keeps the count; three copies of one keep the combined bits."""
    columns = "half_id bigint, digest bigint, standing string"
    a, b, c = (1, 10, "judged"), (2, 20, "judged"), (3, 30, "judged")
    swapped = [(1, 20, "judged"), (2, 10, "judged"), c]
    altered = [(1, 11, "judged"), (2, 21, "judged"), c]

    def dirty(commits: list[Any], records: list[Any]) -> bool:
        sides = [session.createDataFrame(each, columns) for each in (commits, records)]
        (row,) = fold.compared(sides[0], sides[1], shift=10).collect()
        return bool(row["dirty"])

    assert not dirty([a, b, c], [c, a, b])
    for records in ([a, a, c], [a, a, a, b, c], [a, b], swapped, altered, [a, b, c, c]):
        assert dirty([a, b, c], records)
