"""The end of a run: its counts, and the report of its findings."""

from __future__ import annotations

from collections.abc import Mapping

from outbox.reconciliation.run import CheckpointUpdate
from spark.findings.verdict import verdict_of
from spark.report.aggregates import Aggregates
from spark.report.report import Counts, Report
from spark.run_context import Run


def summarize(
    run: Run,
    aggregates: Aggregates,
    checkpoint: CheckpointUpdate,
    versions: Mapping[str, str],
) -> Report:
    """Return the report of a run, before it is stored; ``versions`` are those of its engine."""
    context, options, plan, ledger = run.context, run.options, run.plan, run.ledger
    with context.progress.stage("sum up"):
        undecided = run.snapshot.undecided()
        counts = Counts(
            **aggregates.counts,
            prepared=undecided.prepared,
            parked=undecided.parked,
            unverifiable=ledger.unverifiable.total(),
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
        unverifiable=dict(ledger.unverifiable),
        previous=next(iter(context.run_store.past(1)), None),
        timings=context.progress.timings,
        versions=versions,
        checkpoint=checkpoint,
        folder=options.folder_of(plan.run_id),
        show_keys=options.show_keys,
    )
