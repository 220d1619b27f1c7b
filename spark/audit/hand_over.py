"""The step of an audit that collects what the next run must know, and what it may not forget."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from outbox.messages.message_id import HalfId
from outbox.reconciliation.run import CarriedRow, CheckpointUpdate, ExpiredEvidence
from spark.audit.suspects import chunks
from spark.checks import unverifiable
from spark.columns.frames import Frames
from spark.compare import open_items
from spark.compare.bucket_checksums import Differences
from spark.compare.facts import Judgement
from spark.cut.checkpoint import cut_of
from spark.findings.finding import Finding
from spark.run_context import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftovers:
    """What a run has read and not settled."""

    unjudged: Callable[[Sequence[HalfId]], Sequence[HalfId]]
    """Returns those of the messages that are not among its commits."""
    unlisted: Callable[[Sequence[HalfId]], Sequence[HalfId]]
    """Returns those without a record that are older than all manifests: none is judged."""
    carried: Callable[[Collection[Finding]], tuple[CarriedRow, ...] | None]
    """Returns the rows that the next run takes over, with these findings; None: too many."""


def leftovers(
    frames: Frames, found: Differences, judgement: Judgement, expired: Sequence[HalfId]
) -> Leftovers:
    """Return what Spark has left; nothing can settle the ``expired`` messages any more."""
    open_ids = None
    if found.open:
        open_ids = open_items.open_half_ids(
            found.unsettled, judgement.retired_below, expired, judgement.kept_below
        )
    opened = found.open - len(expired)
    return Leftovers(
        unjudged=lambda half_ids: unverifiable.unjudged_half_ids(half_ids, frames.commits),
        unlisted=lambda half_ids: unverifiable.unlisted_half_ids(half_ids, found.unsettled),
        carried=lambda lasting: open_items.carried_rows(open_ids, frames, lasting, opened),
    )


def checkpoint(run: Run, left: Leftovers) -> CheckpointUpdate:
    """Return what the next run must know, the cut and the open items; enter what remains open."""
    store, ledger = run.context.run_store, run.ledger
    with run.context.progress.stage("carry what is open") as stage:
        ledger.keep(run.unseen)
        # A message whose half was retired is still judged while its commit is carried.
        retired = store.open_below(run.snapshot.retired_below())
        ledger.expired_evidence = ExpiredEvidence(
            half_ids=[*ledger.expired, *left.unjudged(retired)],
            starts={each.partition: each.start for each in run.plan.log.records},
            excluded_topics=run.plan.log.excluded,
            unlisted=left.unlisted(store.missing(sorted(ledger.entered))),
        )
        rows = left.carried(ledger.lasting.values())
        stage.rows = None if rows is None else len(rows)
    for some in chunks(iter(unverifiable.remaining_findings(store, ledger))):
        ledger.keep(some)
    after = run.stored.run_id if run.stored else None
    if rows is None:
        return CheckpointUpdate(after=after, cut=None, carried=(), positions={})
    return CheckpointUpdate(
        after=after,
        cut=cut_of(run.plan, run.planned.marks, run.planned.previous),
        carried=rows,
        positions={each.shard: each.position for each in run.plan.shards},
    )
