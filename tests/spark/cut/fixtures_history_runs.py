"""Audits histories run after run: each run continues what the previous one has stored."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from outbox.clock import SystemClock
from outbox.messages.manifest import Kind
from outbox.messages.message_id import SHARDS, HalfId
from outbox.reconciliation.run import StoredCheckpoint
from spark.checks.coverage import manifest_breaks
from spark.checks.open_findings import have_changed
from spark.columns import manifests
from spark.columns.frames import Frames
from spark.columns.staging import stage_frame
from spark.compare import bucket_checksums, placement
from spark.compare.diagnosis import findings_of_suspect
from spark.compare.evidence import SUSPECTS_PER_CALL, look_up
from spark.compare.expiry import earlier_runs
from spark.compare.facts import Judgement
from spark.cut.checkpoint import Previous, cut_of, previous_of
from spark.cut.log_state import LogState
from spark.cut.reader import Reader, plan_full_read, plan_read, read_frames
from spark.cut.shard_spans import newest_batches
from spark.findings.finding import Finding
from spark.progress import Progress
from spark.report.aggregates import first_ahead
from tests.spark.cut.fixtures_histories import History, Open
from tests.spark.cut.fixtures_scenarios import Cell, Moment, cells_of

Found = dict[str, Finding]
"""The open findings by their id."""


@dataclass(kw_only=True)
class Runs:
    """Consecutive runs; each continues the previous one from its stored state."""

    spark_session: SparkSession
    folder: Path
    chain: StoredCheckpoint | None = None
    open: dict[int, Found] = field(default_factory=dict)
    """What the last run left open, by cell."""

    def of(self, cell: Cell, moment: Moment) -> Open:
        """Return what the last run found of one history."""
        found = self.open.get(cell.number, {}).values()
        return frozenset((moment.cell_and_subject(f.subject)[1], f.cause) for f in found)

    def run(self, moment: Moment) -> None:
        """Audit both stores; a cell in which the new touches the old is read as a whole."""
        previous = previous_of(self.chain)
        reader = self._reader(moment, "new")
        plan, listed = plan_read(reader, moment.log(), moment.identity, previous, "the first run")
        assert plan.previous is previous, plan.plan.origin.sentence
        frames = read_frames(reader, plan, listed, moment.relay_progress())
        suspects = self._suspects(frames)
        found = self._judged(frames, suspects, moment, previous)
        if previous is not None:
            touched = self._touched(frames, suspects, moment, previous)
            whole = self._whole(moment, previous)
            found = {
                number: whole.get(number, {})
                if number in touched
                else {**self.open.get(number, {}), **found.get(number, {})}
                for number in moment.cells
            }
        self.open = found
        newest = newest_batches(plan.plan.shards, moment.relay_progress())
        log = LogState(ends={each.partition: each.end for each in plan.plan.log.records})
        cut = cut_of(plan, previous, log, newest, first_ahead(frames.records), too_many=False)
        self.chain = StoredCheckpoint(run_id=plan.plan.run_id, cut=json.loads(json.dumps(cut)))

    def _reader(self, moment: Moment, name: str) -> Reader:
        progress = Progress(stream=StringIO(), clock=SystemClock())
        sources: Any = moment
        return Reader(sources=sources, progress=progress, stage_uri=(self.folder / name).as_uri())

    def _whole(self, moment: Moment, previous: Previous) -> dict[int, Found]:
        """Judge everything, knowing what the previous run has read."""
        reader = self._reader(moment, "whole")
        plan, listed = plan_full_read(reader, moment.log(), moment.identity, "touched")
        frames = read_frames(reader, plan, listed, moment.relay_progress(), previous)
        return self._judged(frames, self._suspects(frames), moment, previous)

    def _suspects(self, frames: Frames) -> DataFrame:
        # A bucket is one batch instead of one shard, and however many differ, no other is joined.
        mismatch = bucket_checksums.mismatches(frames, bucket_messages=1, most_dirty=1.0)
        by_buckets = bucket_checksums.suspects_of(frames.commits, frames.records, mismatch)
        suspects = stage_frame(by_buckets, f"{frames.stage_uri}/suspects")
        joined = bucket_checksums.suspects_of(frames.commits, frames.records, None)
        assert Counter(suspects.collect()) == Counter(joined.collect())
        return suspects

    def _touched(
        self, frames: Frames, suspects: DataFrame, moment: Moment, previous: Previous
    ) -> set[int]:
        """Return the cells in which what is new cannot be judged alone."""
        world: Any = moment
        uncommitted = suspects.where("standing IS NULL").select("half_id").collect()
        new = manifests.newer_than(frames.manifests, previous.batches)
        others = new.where(f"kind <> {Kind.BATCH:d}").select("shard").collect()
        breaks = manifest_breaks(frames, world, previous.batches)
        return {
            *(moment.cell_of(HalfId(row["half_id"])) for row in uncommitted),
            *(row["shard"] // SHARDS for row in others),
            *(row["partition"] // SHARDS for row in breaks),
            *(n for n, open_ in self.open.items() if have_changed(open_.values(), world)),
        }

    def _judged(
        self, frames: Frames, suspects: DataFrame, moment: Moment, previous: Previous | None
    ) -> dict[int, Found]:
        """Look up the suspects and judge them, a bounded number at a time."""
        rows = placement.evidence(suspects, frames.records, frames.listings).collect()
        missing = [
            each.half_id
            for open_ in self.open.values()
            for each in open_.values()
            if each.rule.kind == "missing" and each.half_id is not None
        ]
        judgement = Judgement(
            retired_below=HalfId(0), starts={}, earlier=earlier_runs(previous, missing, ())
        )
        return _by_cell(rows, moment, judgement)


def _by_cell(rows: Sequence[Any], moment: Moment, judgement: Judgement) -> dict[int, Found]:
    world: Any = moment
    found: dict[int, Found] = {}
    for start in range(0, len(rows), SUSPECTS_PER_CALL):
        for suspect in look_up(rows[start : start + SUSPECTS_PER_CALL], world, world):
            for each in findings_of_suspect(suspect, judgement):
                number, _ = moment.cell_and_subject(each.subject)
                found.setdefault(number, {})[each.finding_id] = each
    return found


def wrong_results(
    spark_session: SparkSession, folder: Path, histories: Sequence[History]
) -> Iterator[list[tuple[History, str]]]:
    """Audit histories; yield after each run the histories where its findings differ from counting.

    The last run sees nothing new, so that nothing is ahead of it any more.
    """
    cells = cells_of(histories)
    runs = Runs(spark_session=spark_session, folder=folder)
    for left in reversed(range(max(each.runs for each in cells))):
        now: Mapping[int, Cell] = {each.number: each for each in cells if each.runs > left}
        moment = Moment(spark_session=spark_session, cells=now, runs_left=left)
        runs.run(moment)
        differ = {number: runs.of(cell, moment) ^ cell.open(left) for number, cell in now.items()}
        yield [
            (now[number].history, f"with {left} runs to come {sorted(apart)}")
            for number, apart in differ.items()
            if apart
        ]
