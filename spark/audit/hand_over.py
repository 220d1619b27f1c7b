"""The step of an audit that collects what the next run must know, and what it may not forget."""

from __future__ import annotations

from functools import partial

from outbox.reconciliation.run import CheckpointUpdate
from spark.audit.step_values import Checked
from spark.audit.suspects import chunks
from spark.checks import foreign_records, misplaced_keys
from spark.checks.unverifiable import ReadSoFar, remaining_findings, unverifiable_of
from spark.compare import bucket_checksums, open_items
from spark.cut.checkpoint import MisplacedKeys, cut_of
from spark.report.summary import Outcome


def checkpoint(checked: Checked) -> Outcome:
    """Collect what the next run must know: the cut, the open items and the misplaced keys."""
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
        misplaced = _misplaced_keys(checked)
    cut = cut_of(read.plan, read.planned.marks, read.planned.previous, misplaced)
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


def _misplaced_keys(checked: Checked) -> dict[str, MisplacedKeys]:
    """Return the keys that the next run must know to be outside their expected partition."""
    read, misplaced = checked.diagnosed.compared.read, checked.checks.misplaced
    if read.planned.previous is not None:
        return misplaced_keys.kept_misplaced_keys(read.planned.previous, misplaced.partitions)
    sources = read.captured.context.sources
    return misplaced_keys.misplaced_keys_by_topic(
        misplaced, partial(sources.read_unrequested, read.plan.snapshot)
    )
