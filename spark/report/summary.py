"""The end of a run: its counts, its charts, and the report of its findings."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from outbox.reconciliation.checkpoint import CheckpointUpdate
from outbox.reconciliation.ports import SourceSnapshot
from outbox.reconciliation.snapshot import UndecidedCounts
from spark.columns.frames import Frames
from spark.columns.staging import stage_frame
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
    folder = f"{options.report_dir}/run_id={plan.run_id}"
    with context.progress.stage("sum up"):
        undecided = outcome.snapshot.undecided(whole=plan.origin.run_id is None)
        sums = placement.totals(
            frames.segments, bucket_checksums.mismatched_records(frames.new_records, mismatch)
        )
        counts = _collect_counts(sums, frames.size, undecided, ledger.unverifiable)
        by_minute = placement.minutes(frames.segments, frames.new_records).coalesce(1)
        minutes = _collect_minutes(stage_frame(by_minute, f"{folder}/minutes"))
        latencies = _collect_latencies(
            stage_frame(outcome.latencies.coalesce(1), f"{folder}/latencies")
        )
        log_state = log_history.state_after_run(plan.log, plan.shards, anchors(frames.records))
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
        folder=options.report_dir / f"run_id={plan.run_id}",
        digest=options.digest,
        show_keys=options.show_keys,
        formats=options.formats,
    )


def _collect_counts(
    totals: DataFrame, records: int, undecided: UndecidedCounts, unverifiable: int
) -> Counts:
    """Collect the one row of ``placement.totals``; ``records`` counts all that were read."""
    row = {name: count or 0 for name, count in totals.collect()[0].asDict().items()}
    return Counts(
        records=records,
        prepared=undecided.prepared,
        parked=undecided.parked,
        unverifiable=unverifiable,
        **row,
    )


def _collect_minutes(minutes: DataFrame) -> tuple[Minute, ...]:
    """Collect the newest minutes, in order."""
    newest = minutes.orderBy("minute", ascending=False).limit(MINUTES_SHOWN).collect()
    return tuple(Minute(**row.asDict()) for row in reversed(newest))


def _collect_latencies(latencies: DataFrame) -> tuple[Latency, ...]:
    """Collect the newest minutes and every topic, each in order."""
    newest = latencies.orderBy(F.col("minute").desc_nulls_first(), "topic").limit(MINUTES_SHOWN)
    rows = [Latency(**row.asDict()) for row in newest.collect()]
    return tuple(reversed(rows))
