"""The end of a run: its counts, its charts, and the report of its findings."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from outbox.reconciliation.run import CheckpointUpdate
from outbox.reconciliation.snapshot import UndecidedCounts
from spark.columns.frames import Frames
from spark.columns.segments import BASELINE, IN_FLIGHT, JUDGED
from spark.columns.slot import record_counts
from spark.compare import bucket_checksums
from spark.cut import cut_plan, log_history
from spark.findings.ledger import Ledger
from spark.findings.verdict import verdict_of
from spark.report.aggregates import Aggregates
from spark.report.report import Counts, Report
from spark.run_context import Options, RunContext

if TYPE_CHECKING:
    from outbox.postgres.reconciliation.source import PostgresSnapshot

PAST_RUNS: Final = 29


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run has read and found, before it is summed up."""

    context: RunContext
    options: Options
    started_at: datetime
    plan: cut_plan.Plan
    frames: Frames
    mismatch: bucket_checksums.Mismatch | None
    snapshot: PostgresSnapshot
    ledger: Ledger
    aggregates: Aggregates
    checkpoint: CheckpointUpdate
    """The checkpoint that the run leaves for the next run."""


def summarize(outcome: Outcome) -> Report:
    """Return the report of a run, before it is stored."""
    context, options, plan = outcome.context, outcome.options, outcome.plan
    frames, ledger, mismatch = outcome.frames, outcome.ledger, outcome.mismatch
    with context.progress.stage("sum up"):
        undecided = outcome.snapshot.undecided()
        counts = _counts(frames, mismatch, undecided, ledger.unverifiable)
        log_state = log_history.state_after_run(
            plan.log, plan.shards, outcome.aggregates.anchors, plan.snapshot
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
        minutes=outcome.aggregates.minutes,
        latencies=outcome.aggregates.latencies,
        past=context.run_store.past(PAST_RUNS),
        timings=context.progress.timings,
        versions=options.versions,
        log_state=log_state.as_json(),
        checkpoint=outcome.checkpoint,
        folder=options.folder_of(plan.run_id),
        show_keys=options.show_keys,
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
