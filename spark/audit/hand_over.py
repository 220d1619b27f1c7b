"""The step of an audit that keeps what stays open, and collects what the next run must know."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from outbox.messages.message_id import HalfId
from outbox.reconciliation.log import Partition
from outbox.reconciliation.run import CheckpointUpdate, ExpiredEvidence
from spark.checks import unverifiable
from spark.compare.evidence import chunks
from spark.cut.checkpoint import cut_of, previous_of
from spark.cut.log_history import state_after_run
from spark.cut.log_state import Anchor
from spark.cut.shard_spans import newest_batches
from spark.report.aggregates import first_ahead
from spark.run_context import Run, SparkRun


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftovers:
    """What a run cannot settle."""

    ahead: Mapping[Partition, int]
    """By partition the first record ahead of the cut: the next run reads it again."""
    unjudged: Collection[HalfId] = ()
    """The messages with an open finding whose halves were retired, and that have no commit."""
    unlisted: Collection[HalfId] = ()
    """Missing messages that no manifest lists any more: they stay missing."""


def leftovers(run: SparkRun, ahead: int) -> Leftovers:
    """Return what Spark cannot settle; ``ahead`` is the number of records ahead of the cut."""
    store, frames = run.context.run_store, run.frames
    missing = store.missing(sorted(run.ledger.entered))
    unread = unverifiable.unjudged_half_ids(missing, frames.commits)
    return Leftovers(
        ahead=first_ahead(frames.records) if ahead else {},
        unjudged=unverifiable.unjudged_half_ids(open_retired(run), frames.commits),
        unlisted=unverifiable.unlisted_half_ids(missing, frames)
        | unverifiable.still_held(unread, run.snapshot),
    )


def open_retired(run: Run) -> Sequence[HalfId]:
    """Return the messages with an open finding whose halves were retired."""
    snapshot = run.snapshot
    return run.context.run_store.open_retired(snapshot.retired_below(), snapshot.retired_leaves())


def checkpoint(run: Run, left: Leftovers, anchors: Mapping[Partition, Anchor]) -> CheckpointUpdate:
    """Return what the next run must know, also where the log ends; enter what remains open."""
    store, ledger, plan = run.context.run_store, run.ledger, run.plan
    with run.context.progress.stage("keep what is open"):
        ledger.expired_evidence = ExpiredEvidence(
            half_ids=[*ledger.expired, *left.unjudged],
            starts={each.partition: each.start for each in plan.log.records},
            excluded_topics=plan.log.excluded,
            unlisted=[*left.unlisted],
            continued=run.continued,
        )
        for some in chunks(iter(unverifiable.remaining_findings(store, ledger))):
            ledger.keep(some)
    return CheckpointUpdate(
        after=run.stored.run_id if run.stored else None,
        cut=cut_of(
            run.planned,
            previous_of(run.stored),
            state_after_run(plan.log, plan.shards, anchors, plan.snapshot),
            newest_batches(plan.shards, run.snapshot.relay_progress()),
            left.ahead,
            too_many=len(ledger.kept) < ledger.total,
        ),
        positions={each.shard: each.position for each in plan.shards},
    )
