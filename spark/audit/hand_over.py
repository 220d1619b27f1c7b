"""The step of an audit that collects what the next run must know, and what it may not forget."""

from __future__ import annotations

from collections.abc import Sequence

from outbox.messages.message_id import HalfId
from outbox.reconciliation.run import CarriedRow, CheckpointUpdate
from spark.audit.suspects import chunks
from spark.checks import foreign_records
from spark.checks.unverifiable import remaining_findings, unverifiable_of
from spark.compare import open_items
from spark.compare.bucket_checksums import Differences, mismatched_records
from spark.compare.facts import Judgement
from spark.cut.checkpoint import cut_of
from spark.run_context import Run


def checkpoint(
    run: Run, found: Differences, judgement: Judgement, expired: Sequence[HalfId]
) -> CheckpointUpdate:
    """Return what the next run must know, the cut and the open items; enter what remains open."""
    with run.context.progress.stage("carry what is open") as stage:
        _enter_foreign(run, found)
        run.ledger.expired_evidence = unverifiable_of(run, found.unsettled, judgement.retired_below)
        rows = _carried(run, found, judgement, expired)
        stage.rows = None if rows is None else len(rows)
    for some in chunks(iter(remaining_findings(run.context.run_store, run.ledger))):
        run.ledger.keep(some)
    after = run.stored.run_id if run.stored else None
    if rows is None:
        return CheckpointUpdate(after=after, cut=None, carried=(), positions={})
    return CheckpointUpdate(
        after=after,
        cut=cut_of(run.plan, run.planned.marks, run.planned.previous),
        carried=rows,
        positions={each.shard: each.position for each in run.plan.shards},
    )


def _enter_foreign(run: Run, found: Differences) -> None:
    counts = run.frames.record_counts
    if counts is None or counts["unnamed"]:
        unequal = mismatched_records(run.frames.new_records, found.mismatch)
        run.ledger.enter(foreign_records.findings(unequal, run.options.topic_rules, run.unseen))
    run.ledger.keep(run.unseen)


def _carried(
    run: Run, found: Differences, judgement: Judgement, expired: Sequence[HalfId]
) -> tuple[CarriedRow, ...] | None:
    open_ids = None
    if found.open:
        open_ids = open_items.open_half_ids(
            found.unsettled, judgement.retired_below, expired, judgement.kept_below
        )
    lasting = run.ledger.lasting.values()
    return open_items.carried_rows(open_ids, run.frames, lasting, found.open - len(expired))
