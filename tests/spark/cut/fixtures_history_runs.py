"""Audits histories run after run: each run continues what the previous one has stored."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from outbox.clock import SystemClock
from outbox.messages.message_id import HalfId
from outbox.reconciliation.run import StoredCheckpoint
from spark.columns.staging import stage_frame
from spark.compare import bucket_checksums, open_items, placement
from spark.compare.diagnosis import findings_of_suspect
from spark.compare.evidence import SUSPECTS_PER_CALL, look_up
from spark.compare.facts import Judgement
from spark.cut.checkpoint import cut_of, previous_of
from spark.cut.reader import Reader, plan_read, read_frames
from spark.findings.finding_class import Cause
from spark.progress import Progress
from tests.spark.cut.fixtures_histories import History, Open
from tests.spark.cut.fixtures_scenarios import Cell, Moment, cells_of


@dataclass(kw_only=True)
class Runs:
    """Consecutive runs; each continues the previous one from its stored state."""

    spark_session: SparkSession
    folder: Path
    chain: StoredCheckpoint | None = None
    read: int = 0
    """The number of records that all runs have read."""
    found: dict[int, Open] = field(default_factory=dict)
    """What the last run found, by cell."""

    def of(self, cell: Cell) -> Open:
        """Return what the last run found of one history."""
        return self.found.get(cell.number, frozenset())

    def run(self, moment: Moment) -> None:
        """Audit both stores as they are at this moment."""
        previous = previous_of(self.chain)
        sources: Any = moment
        reader = Reader(
            sources=sources,
            progress=Progress(stream=StringIO(), clock=SystemClock()),
            stage_uri=self.folder.as_uri(),
        )
        plan, listed = plan_read(reader, moment.log(), moment.identity, previous, "the first run")
        assert plan.previous is previous, plan.plan.origin.sentence
        frames = read_frames(reader, plan, listed, moment.relay_progress())
        uri = self.folder.as_uri()
        # A bucket is one batch instead of one shard, and however many differ, no other is joined.
        mismatch = bucket_checksums.mismatches(frames, bucket_messages=1, most_dirty=1.0)
        by_buckets = bucket_checksums.open_ids(frames.commits, frames.records, mismatch)
        dirty = stage_frame(by_buckets, f"{uri}/dirty")
        joined = bucket_checksums.open_ids(frames.commits, frames.records, None)
        assert Counter(dirty.collect()) == Counter(joined.collect())
        suspects = dirty.where("suspect")
        rows = placement.evidence(suspects, frames.records, frames.listings).collect()
        self.found = judge_suspects(rows, moment, continued=previous is not None)
        open_ids = open_items.open_half_ids(dirty, HalfId(0), [])
        carried = open_items.carried_rows(open_ids, frames, ())
        assert carried is not None
        cut = json.loads(json.dumps(cut_of(plan.plan, plan.marks, previous)))
        self.chain = StoredCheckpoint(run_id=plan.plan.run_id, cut=cut, carried=carried)
        self.read += frames.size


def judge_suspects(rows: Sequence[Any], moment: Moment, *, continued: bool) -> dict[int, Open]:
    """Look up the suspects and judge them, a bounded number at a time."""
    judgement = Judgement(retired_below=HalfId(0), starts={}, continued=continued)
    world: Any = moment
    found: dict[int, set[tuple[str, Cause]]] = {}
    for start in range(0, len(rows), SUSPECTS_PER_CALL):
        for suspect in look_up(rows[start : start + SUSPECTS_PER_CALL], world, world):
            for each in findings_of_suspect(suspect, judgement):
                number, subject = moment.cell_and_subject(each.subject)
                late = each.cause is Cause.DUPLICATE_LATE
                cause = Cause.DUPLICATE_REPEATED if late else each.cause
                found.setdefault(number, set()).add((subject, cause))
    return {number: frozenset(some) for number, some in found.items()}


def wrong_results(
    spark_session: SparkSession, folder: Path, histories: Sequence[History]
) -> Iterator[list[tuple[History, str]]]:
    """Audit histories; yield after each run the histories where its findings differ from counting.

    The last run sees nothing new, so that nothing is ahead of it any more.
    """
    cells = cells_of(histories)
    runs = Runs(spark_session=spark_session, folder=folder)
    for left in reversed(range(max(each.runs for each in cells))):
        now = {each.number: each for each in cells if each.runs > left}
        runs.run(Moment(spark_session=spark_session, cells=now, runs_left=left))
        differ = {number: runs.of(cell) ^ cell.open(left) for number, cell in now.items()}
        yield [
            (now[number].history, f"with {left} runs to come {sorted(apart)}")
            for number, apart in differ.items()
            if apart
        ]
    read = sum(each.record_end(each.cut(0)) for each in cells)
    assert runs.read == read, f"{runs.read} records were read, there are {read}"
