"""The steps of an audit. Each adds its findings to the ledger of the run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from outbox.messages.message_id import LOW_BITS
from outbox.reconciliation.run import StoredCheckpoint
from spark.audit.suspects import enter_suspects
from spark.audit.touched import touched_reason
from spark.checks import (
    coverage,
    foreign_records,
    match_checks,
    retention,
    sample,
    unlogged_commits,
)
from spark.checks.open_findings import open_findings
from spark.columns.segments import IN_FLIGHT
from spark.columns.staging import run_folder
from spark.compare import placement
from spark.compare.bucket_checksums import (
    Differences,
    Mismatch,
    differences,
    mismatched_records,
)
from spark.compare.evidence import chunks
from spark.compare.expiry import earlier_runs
from spark.compare.facts import Judgement
from spark.compare.matches import matches_of
from spark.cut import log_history
from spark.cut.checkpoint import PlannedRead, Previous, previous_of
from spark.cut.cut_capture import capture_log_cut
from spark.cut.cut_plan import LogCut, expired_shards
from spark.cut.log_state import LogState
from spark.cut.reader import Reader, plan_full_read, plan_read, read_frames
from spark.cut.shard_spans import judged_spans
from spark.cut.sources import Sources
from spark.findings.finding import Finding
from spark.findings.ledger import Ledger
from spark.report.aggregates import Aggregates, aggregates_of, unequal_records
from spark.report.topic_counts import read_counts
from spark.run_context import Options, Run, RunContext, SparkRun

if TYPE_CHECKING:
    from outbox.postgres.reconciliation.source import PostgresSnapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """The cut of the log, and where the last run ended."""

    context: RunContext
    options: Options
    started_at: datetime
    stored: StoredCheckpoint | None
    earlier: tuple[Finding, ...]
    log: LogCut


def capture(context: RunContext, options: Options) -> Captured:
    """Freeze the ends of the log; the snapshot of the database is taken after this has returned."""
    started_at = context.clock.now()
    with context.progress.stage("cut of the log"):
        stored = context.run_store.checkpoint()
        previous = previous_of(stored)
        listed = context.source.listed()
        log = capture_log_cut(
            context.log_reader,
            options.progress_topic,
            lambda: [t for t in context.source.topics() if t not in options.exclude_topics],
            context.clock,
            context.pause,
            previous.log if previous else LogState(),
            options.accept_topics,
        )
    expired = expired_shards(listed, log.manifests)
    return Captured(
        context=context,
        options=options,
        started_at=started_at,
        stored=stored,
        earlier=open_findings(context.run_store),
        log=replace(log, excluded=options.exclude_topics, expired_shards=expired),
    )


@contextmanager
def staged(captured: Captured, session: SparkSession) -> Iterator[Captured]:
    """Give the run a stage of its own, and remove it at the end."""
    options = captured.options
    with run_folder(session, options.stage_uri) as uri:
        yield replace(captured, options=replace(options, stage_uri=uri))


def read(
    captured: Captured, snapshot: PostgresSnapshot, sources: Sources
) -> tuple[SparkRun, Differences]:
    """Read and compare what is new, or everything if what is new cannot be judged alone."""
    context, options, log = captured.context, captured.options, captured.log
    previous = None if options.full else previous_of(captured.stored)
    reader = Reader(sources=sources, progress=context.progress, stage_uri=options.stage_uri)
    progress = snapshot.relay_progress()

    def compared(
        planned: PlannedRead, listed: DataFrame, known: Previous | None = None
    ) -> tuple[SparkRun, Differences]:
        frames = read_frames(reader, planned, listed, progress, known)
        fields = run_fields(captured, snapshot, planned)
        with context.progress.stage("compare") as stage:
            found = differences(frames)
            stage.rows = found.count
        return SparkRun(**fields, sources=sources, frames=frames), found

    reason = _full_read_reason(captured)
    run, found = compared(*plan_read(reader, log, snapshot.identity, previous, reason))
    if run.planned.previous is None:
        return run, found
    touched = touched_reason(run, found, run.planned.previous)
    if touched is None:
        return run, found
    context.progress.note(f"reads everything: {touched}")
    whole = plan_full_read(reader, log, snapshot.identity, touched)
    return compared(*whole, known=previous)


def run_fields(
    captured: Captured, snapshot: PostgresSnapshot, planned: PlannedRead
) -> dict[str, Any]:
    """Return the fields of a run with a frozen plan; its ledger is empty."""
    context, options = captured.context, captured.options
    run_id = planned.plan.run_id
    return {
        "context": context,
        "options": options,
        "started_at": captured.started_at,
        "stored": captured.stored,
        "earlier": captured.earlier,
        "snapshot": snapshot,
        "planned": planned,
        "ledger": Ledger(
            run_id=run_id,
            folder=options.folder_of(run_id) / "findings",
            accepted_ids=context.run_store.accepted(),
            rules=options.topic_rules,
            compacted_topics=captured.log.compacted_topics,
        ),
    }


def judgement_of(run: SparkRun) -> Judgement:
    """Return the facts about the run by which a suspect is judged."""
    plan, snapshot, missing = run.plan, run.snapshot, run.context.run_store.missing([])
    new_topics = plan.log.accepted | plan.log.former_ids.keys()
    return Judgement(
        retired_below=snapshot.retired_below(),
        retired_leaves=snapshot.retired_leaves(),
        starts=plan.log.starts,
        ends={each.partition: each.end for each in plan.log.records},
        batches={each.shard: each.batch_no for each in plan.shards},
        earlier=earlier_runs(previous_of(run.stored), missing, new_topics),
        unread_topics=plan.log.unread_topics,
        expired_topics=plan.log.expired_topics,
        baselines=log_history.baselines(plan.log, plan.shards),
        unlisted_shards=plan.unlisted_shards,
        listed_from={each.shard: each.listed_from for each in plan.shards},
    )


def diagnose(run: SparkRun, found: Differences, judgement: Judgement) -> None:
    """Enter the findings about the cut as a whole, then those about each suspect."""
    frames, snapshot, ledger = run.frames, run.snapshot, run.ledger
    with run.context.progress.stage("look up findings") as stage:
        late = _late_commits(run) if frames.standings[IN_FLIGHT] else ()
        retired = retention.retired_ends(frames.manifests, judgement.retired_below >> LOW_BITS)
        ledger.enter(coverage.findings(run, late, retired))
        missing, unread = run.context.run_store.missing([]), run.plan.log.unread_topics
        unlogged = unlogged_commits.unlogged(snapshot, run.planned.previous, missing)
        if not run.continued:
            breaks = coverage.manifest_breaks(frames, snapshot, {})
            names = snapshot.halves(unlogged).values() if breaks else ()
            ledger.enter(coverage.break_findings(breaks, names, run.earlier))
        ledger.enter(unlogged_commits.findings(unlogged, snapshot, frames.records, unread))
        if found.count:
            enter_suspects(run, found, judgement)
        stage.rows = ledger.total


def check(run: SparkRun, mismatch: Mismatch | None) -> Aggregates:
    """Judge the matches by their order and their places; count for the report."""
    matches = matches_of(run.frames, mismatch, run.frames.stage_uri)
    with run.context.progress.stage("order") as stage:
        for some in chunks(match_checks.order_findings(run, matches)):
            run.ledger.enter(some)
        run.ledger.enter(match_checks.misplaced_findings(run, matches))
        stage.rows = run.frames.size
    with run.context.progress.stage("sample"):
        sampled = match_checks.sampled_rows(run, matches, () if run.continued else run.earlier)
        for some in chunks(sample.findings(sampled, run.snapshot, run.earlier)):
            run.ledger.keep(some)
    return _counted(run, mismatch)


def committed_counts(run: Run) -> Sequence[dict[str, Any]]:
    """Return the numbers of new commits by topic and producer group."""
    previous = run.planned.previous
    spans = judged_spans(run.plan.shards, previous.positions if previous else {})
    return run.snapshot.committed(spans)


def _counted(run: SparkRun, mismatch: Mismatch | None) -> Aggregates:
    """Count the rows, and enter the records that name no message."""
    frames = run.frames
    with run.context.progress.stage("count for the report"):
        unequal = unequal_records(frames, mismatch)
        if unequal["unnamed"]:
            unmatched = mismatched_records(frames.records, mismatch)
            run.ledger.enter(foreign_records.findings(unmatched, run.unseen))
        by_place = frames.records.groupBy("topic", "producer_group")
        records = by_place.agg(F.count("*").alias("records")).collect() if frames.size else []
        rows = committed_counts(run) if any(frames.standings.values()) else []
        read = read_counts([*rows, *(each.asDict() for each in records)])
        return aggregates_of(frames, unequal, read)


def _late_commits(run: SparkRun) -> list[Row]:
    taken_at = F.lit(run.plan.snapshot.taken_at)
    grace = run.options.grace_seconds
    return placement.late_by_shard(run.frames.segments, grace, taken_at).collect()


def _full_read_reason(captured: Captured) -> str:
    """Return why a run without a cut to continue reads everything."""
    if captured.options.full:
        return "asked for"
    return "the previous run left no cut to continue" if captured.stored else "the first run"
