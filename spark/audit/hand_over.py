"""The step of an audit that collects what the next run must know, and what it may not forget."""

from __future__ import annotations

from outbox.reconciliation.run import CheckpointUpdate
from spark.audit.step_values import Checked
from spark.audit.suspects import chunks
from spark.checks import foreign_records
from spark.checks.unverifiable import ReadSoFar, remaining_findings, unverifiable_of
from spark.compare import bucket_checksums, open_items
from spark.cut.checkpoint import cut_of
from spark.report.summary import Outcome


def checkpoint(checked: Checked) -> Outcome:
    """Collect what the next run must know: the cut and the open items."""
    diagnosed, ledger = checked.diagnosed, checked.diagnosed.ledger
    compared, judgement = diagnosed.compared, diagnosed.judgement
    read, captured = compared.read, compared.read.captured
    context, rules = captured.context, captured.options.topic_rules
    with context.progress.stage("carry what is open") as stage:
        before = captured.earlier_findings if read.planned.previous else ()
        if read.frames.record_counts is None or read.frames.record_counts["unnamed"]:
            new_records = read.frames.new_records
            unequal = bucket_checksums.mismatched_records(new_records, compared.mismatch)
            ledger.enter(foreign_records.findings(unequal, rules, before))
        ledger.keep(before)
        unverified = ReadSoFar(
            commits=read.frames.commits,
            unsettled=compared.unsettled,
            retired_below=judgement.retired_below,
            starts=checked.checks.starts,
            excluded_topics=read.plan.log.excluded,
        )
        ledger.expired_evidence = unverifiable_of(context.run_store, ledger, unverified)
        open_ids = None
        if compared.open:
            open_ids = open_items.open_half_ids(
                compared.unsettled,
                judgement.retired_below,
                diagnosed.expired,
                judgement.kept_below,
            )
        rows = open_items.carried_rows(open_ids, read.frames, ledger.lasting.values())
        stage.rows = None if rows is None else len(rows)
    cut = cut_of(read.plan, read.planned.marks, read.planned.previous)
    update = CheckpointUpdate(
        after=captured.stored.run_id if captured.stored else None,
        cut=None if rows is None else cut,
        carried=rows or (),
        positions={} if rows is None else {each.shard: each.position for each in read.plan.shards},
    )
    for some in chunks(iter(remaining_findings(context.run_store, ledger))):
        ledger.keep(some)
    return Outcome(
        context=context,
        options=captured.options,
        started_at=captured.started_at,
        plan=read.plan,
        frames=read.frames,
        mismatch=compared.mismatch,
        snapshot=read.snapshot,
        ledger=ledger,
        aggregates=checked.aggregates,
        checkpoint=update,
    )
