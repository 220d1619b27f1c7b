"""The end of a run: its counts, and the report of its findings."""

from __future__ import annotations

from outbox.reconciliation.run import CheckpointUpdate
from outbox.reconciliation.snapshot import UndecidedCounts
from spark.columns.frames import Frames
from spark.columns.segments import BASELINE, IN_FLIGHT, JUDGED
from spark.columns.slot import record_counts
from spark.compare import bucket_checksums
from spark.cut import log_history
from spark.findings.verdict import verdict_of
from spark.report.aggregates import Aggregates
from spark.report.report import Counts, Report
from spark.run_context import Run


def summarize(
    run: Run,
    mismatch: bucket_checksums.Mismatch | None,
    aggregates: Aggregates,
    checkpoint: CheckpointUpdate,
) -> Report:
    """Return the report of a run, before it is stored."""
    context, options, plan, ledger = run.context, run.options, run.plan, run.ledger
    with context.progress.stage("sum up"):
        undecided = run.snapshot.undecided()
        counts = _counts(run.frames, mismatch, undecided, ledger.unverifiable.total())
        log_state = log_history.state_after_run(
            plan.log, plan.shards, aggregates.anchors, plan.snapshot
        )
        complete = not plan.log.gaps and len(ledger.kept) == ledger.total
        found = [each.finding_id for each in ledger.kept]
        changes = context.run_store.changes(found, complete, ledger.expired_evidence)
    return Report(
        run_id=plan.run_id,
        started_at=run.started_at,
        plan=plan,
        duration_seconds=(context.clock.now() - run.started_at).total_seconds(),
        verdict=verdict_of({each for each, _ in ledger.counts}),
        counts=counts,
        cause_counts=dict(ledger.counts),
        spans=dict(ledger.spans),
        read=aggregates.read,
        totals=ledger.totals(),
        findings=tuple(ledger.kept),
        accepted=tuple(ledger.accepted),
        expired_evidence=ledger.expired_evidence,
        changes=changes,
        latencies=aggregates.latencies,
        unverifiable=dict(ledger.unverifiable),
        previous=next(iter(context.run_store.past(1)), None),
        timings=context.progress.timings,
        versions=options.versions,
        log_state=log_state.as_json(),
        checkpoint=checkpoint,
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
