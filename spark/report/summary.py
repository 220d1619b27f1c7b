"""The end of a run: what was counted, the charts, and the report of what was found."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from pyspark.sql import DataFrame

from outbox.reconciliation.ports import SourceSnapshot
from spark.checks import latency
from spark.columns.frames import Frames
from spark.columns.staging import staged
from spark.compare import bucket_checksums, placement
from spark.cut import cut_plan, log_history
from spark.cut.last_records import anchors
from spark.findings.ledger import Ledger
from spark.findings.verdict import verdict_of
from spark.report.report import Latency, Minute, Report, counts_of, latencies_of, minutes_of
from spark.run_context import Options, RunContext

PAST_RUNS: Final = 29


def summed_up(
    parts: RunContext,
    options: Options,
    plan: cut_plan.Plan,
    frames: Frames,
    odd: bucket_checksums.Mismatch | None,
    timed: DataFrame,
    snapshot: SourceSnapshot,
    ledger: Ledger,
    started_at: datetime,
) -> Report:
    """Return the report of a run, before it is stored."""
    with parts.progress.stage("sum up"):
        undecided = snapshot.undecided(whole=plan.origin.run_id is None)
        sums = placement.totals(
            frames.segments, bucket_checksums.odd_records(frames.new_records, odd)
        )
        counts = counts_of(sums, frames.size, undecided, ledger.unverifiable)
        minutes = _minutes(options, plan, frames)
        latencies = _latencies(options, plan, timed)
        log_state = log_history.after_run(plan.log, plan.shards, anchors(frames.records))
        complete = not plan.log.gaps and len(ledger.kept) == ledger.total
        found = [each.finding_id for each in ledger.kept]
        changes = parts.run_store.changes(found, complete, ledger.gone)
    return Report(
        run_id=plan.run_id,
        started_at=started_at,
        plan=plan,
        verdict=verdict_of({each for each, _ in ledger.counts}),
        counts=counts,
        class_counts=dict(ledger.counts),
        totals=ledger.totals(),
        findings=tuple(ledger.kept),
        accepted=tuple(ledger.accepted),
        gone=ledger.gone,
        changes=changes,
        minutes=minutes,
        latencies=latencies,
        past=parts.run_store.past(plan.run_id, PAST_RUNS),
        timings=parts.progress.timings,
        versions=options.versions,
        log_state=log_state.as_json(),
        folder=options.report_dir / f"run_id={plan.run_id}",
        digest=options.digest,
        show_keys=options.show_keys,
        formats=options.formats,
        language=options.language,
    )


def _minutes(options: Options, plan: cut_plan.Plan, frames: Frames) -> tuple[Minute, ...]:
    counted = placement.minutes(frames.segments, frames.new_records).coalesce(1)
    uri = f"{options.report_dir}/run_id={plan.run_id}/minutes"
    return minutes_of(staged(counted, uri))


def _latencies(options: Options, plan: cut_plan.Plan, timed: DataFrame) -> tuple[Latency, ...]:
    uri = f"{options.report_dir}/run_id={plan.run_id}/latencies"
    return latencies_of(staged(latency.latencies(timed).coalesce(1), uri))
