"""The end of a run: its counts, its charts, and the report of its findings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame

from outbox.reconciliation.checkpoint import CheckpointUpdate
from outbox.reconciliation.ports import SourceSnapshot
from outbox.reconciliation.snapshot import UndecidedCounts
from spark.columns.frames import Frames
from spark.columns.parquet_folder import ParquetFolder
from spark.columns.segments import BASELINE, IN_FLIGHT, JUDGED
from spark.columns.slot import record_counts
from spark.compare import bucket_checksums, placement
from spark.compare.last_records import anchors
from spark.cut import cut_plan, log_history
from spark.findings.ledger import Ledger
from spark.findings.verdict import verdict_of
from spark.report.report import Counts, Latency, Minute, Report
from spark.run_context import Options, RunContext

PAST_RUNS: Final = 29
MINUTES_SHOWN: Final = 10_080
"""A week of minutes; the charts show the newest ones."""
LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run has read and found, before it is summed up."""

    context: RunContext
    options: Options
    started_at: datetime
    plan: cut_plan.Plan
    frames: Frames
    mismatch: bucket_checksums.Mismatch | None
    snapshot: SourceSnapshot
    ledger: Ledger
    latencies: DataFrame
    """Percentiles of publishing, by minute and by topic."""
    checkpoint: CheckpointUpdate
    """The checkpoint that the run leaves for the next run."""


def summarize(outcome: Outcome) -> Report:
    """Return the report of a run, before it is stored."""
    context, options, plan = outcome.context, outcome.options, outcome.plan
    frames, ledger, mismatch = outcome.frames, outcome.ledger, outcome.mismatch
    folder = options.report_dir / f"run_id={plan.run_id}"
    with context.progress.stage("sum up"):
        undecided = outcome.snapshot.undecided(whole=plan.origin.run_id is None)
        counts = _counts(frames, mismatch, undecided, ledger.unverifiable)
        by_minute = placement.minutes(frames.segments, frames.new_records)
        minutes = _newest_minutes(_kept(by_minute, folder / "minutes"))
        latencies = _newest_latencies(_kept(outcome.latencies, folder / "latencies"))
        log_state = log_history.state_after_run(
            plan.log, plan.shards, anchors(frames.records), plan.snapshot
        )
        complete = not plan.log.gaps and len(ledger.kept) == ledger.total
        found = [each.finding_id for each in ledger.kept]
        changes = context.run_store.changes(found, complete, ledger.expired_evidence)
    return Report(
        run_id=plan.run_id,
        started_at=outcome.started_at,
        plan=plan,
        verdict=verdict_of({each for each, _ in ledger.counts}),
        counts=counts,
        class_counts=dict(ledger.counts),
        totals=ledger.totals(),
        findings=tuple(ledger.kept),
        accepted=tuple(ledger.accepted),
        expired_evidence=ledger.expired_evidence,
        changes=changes,
        minutes=minutes,
        latencies=latencies,
        past=context.run_store.past(plan.run_id, PAST_RUNS),
        timings=context.progress.timings,
        versions=options.versions,
        log_state=log_state.as_json(),
        checkpoint=outcome.checkpoint,
        dirty_ratio=mismatch.dirty_ratio if mismatch else None,
        folder=folder,
        digest=options.digest,
        show_keys=options.show_keys,
        formats=options.formats,
    )


def _counts(
    frames: Frames,
    mismatch: bucket_checksums.Mismatch | None,
    undecided: UndecidedCounts,
    unverifiable: int,
) -> Counts:
    """Return the counts of the run; unequal records are counted now, unless they were before."""
    of_records = frames.record_counts
    if of_records is None:
        unequal = bucket_checksums.mismatched_records(frames.new_records, mismatch)
        columns = record_counts().items()
        (row,) = unequal.agg(*(column.alias(name) for name, column in columns)).collect()
        of_records = row.asDict()
    return Counts(
        judged=frames.standings[JUDGED],
        in_flight=frames.standings[IN_FLIGHT],
        baseline=frames.standings[BASELINE],
        records=frames.size,
        ahead=of_records["ahead"],
        foreign=of_records["foreign"],
        prepared=undecided.prepared,
        parked=undecided.parked,
        unverifiable=unverifiable,
    )


def _kept(rows: DataFrame, folder: Path) -> list[dict[str, Any]]:
    """Collect rows and keep all of them as Parquet; there is one a minute, or a topic."""
    table = rows.toArrow()
    ParquetFolder.emptied(folder).add(table)
    found: list[dict[str, Any]] = table.to_pylist()
    return found


def _newest_minutes(rows: Iterable[dict[str, Any]]) -> tuple[Minute, ...]:
    """Return the newest minutes, in order."""
    minutes = sorted((Minute(**row) for row in rows), key=lambda each: each.minute)
    return tuple(minutes[-MINUTES_SHOWN:])


def _newest_latencies(rows: Iterable[dict[str, Any]]) -> tuple[Latency, ...]:
    """Return the newest minutes and then every topic, each in order."""
    every = [Latency(**row) for row in rows]
    topics = sorted((each for each in every if each.minute is None), key=lambda e: e.topic or "")
    by_minute = sorted((e for e in every if e.minute), key=lambda each: each.minute or LONG_AGO)
    return (*by_minute[-MINUTES_SHOWN:], *topics)
