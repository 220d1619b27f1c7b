"""The steps of an audit; each takes and returns one value of ``step_values``.

The order is part of the proof: the log is captured first, the snapshot of the database is taken
last, and both are read only up to this cut.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from outbox.messages.message_id import HalfId
from outbox.reconciliation.run import StoredCheckpoint
from spark.audit import late_arrivals
from spark.audit.step_values import Captured, Checked, Compared, Diagnosed, Read
from spark.audit.suspects import chunks, enter_suspects
from spark.checks import (
    coverage,
    latency,
    match_checks,
    stalled,
    unlogged_commits,
)
from spark.checks.match_checks import MatchChecks
from spark.columns.frames import Frames
from spark.columns.staging import stage_counted
from spark.compare import bucket_checksums
from spark.compare.expiry import earlier_runs
from spark.compare.facts import Judgement
from spark.cut import log_history
from spark.cut.checkpoint import previous_of, unread_ranges
from spark.cut.cut_capture import capture_log_cut
from spark.cut.cut_plan import expired_shards
from spark.cut.log_state import state_of
from spark.cut.reader import PlannedRead, Reader, length, plan_full_read, plan_read, read_frames
from spark.cut.run_size import RunSize, both, sized_run
from spark.findings.ledger import Ledger
from spark.report.aggregates import Aggregates, aggregates_of
from spark.report.report import Report
from spark.report.summary import Outcome, summarize
from spark.run_context import Options, RunContext

if TYPE_CHECKING:
    from outbox.postgres.reconciliation.source import PostgresSnapshot


def capture(context: RunContext, options: Options) -> Captured:
    """Freeze the ends of the log; the snapshot of the database is taken after this has returned."""
    started_at = context.clock.now()
    with context.progress.stage("cut of the log"):
        stored = context.run_store.checkpoint()
        listed = context.source.listed()
        log = capture_log_cut(
            context.log_reader,
            options.progress_topic,
            lambda: [t for t in context.source.topics() if t not in options.exclude_topics],
            context.clock,
            context.pause,
            state_of(context.run_store.log_state()),
            options.accept_topics,
        )
    return Captured(
        context=context,
        options=options,
        started_at=started_at,
        stored=stored,
        log=replace(
            log,
            excluded=options.exclude_topics,
            expired_shards=expired_shards(listed, log.manifests),
        ),
    )


def sized(captured: Captured) -> AbstractContextManager[RunSize]:
    """Open the choice between a small run and any other."""
    options, session = captured.options, captured.context.sources.spark_session
    settings = options.small_settings if options.small_rows else {}
    return sized_run(session, settings, options.stage_uri, options.small_rows)


def read(captured: Captured, snapshot: PostgresSnapshot, size: RunSize) -> Read:
    """Read what is new since the last cut, or everything if the new rows alone cannot be judged."""
    context, options, log = captured.context, captured.options, captured.log
    previous = None if options.full else previous_of(captured.stored)
    reason = _full_read_reason(options, captured.stored)
    unread = unread_ranges(log.records, previous.ends) if previous else log.records
    reader = Reader(
        sources=context.sources,
        progress=context.progress,
        stage_uri=size.stage_for(length(unread)),
        size=size,
    )
    planned = plan_read(reader, log, snapshot.identity, previous, reason)
    frames = read_frames(reader, planned)
    found = _reason_found_by_reading(planned, frames)
    if found is not None:
        planned = plan_full_read(reader, log, snapshot.identity, found)
        frames = read_frames(reader, planned)
    return Read(captured=captured, snapshot=snapshot, planned=planned, frames=frames)


def compare(read: Read) -> Compared:
    """Compare both sides; a suspect is a message that is not exactly one clean pair."""
    context, options, frames = read.captured.context, read.captured.options, read.frames
    with context.progress.stage("compare") as stage:
        uri = frames.stage_uri
        mismatch = bucket_checksums.mismatches(frames, options.mode, uri, options.bucket_messages)
        open_ids = bucket_checksums.open_ids(frames.commits, frames.records, mismatch)
        unsettled, seen = stage_counted(
            open_ids, f"{uri}/dirty", rows=F.count("*"), suspects=F.count_if("suspect")
        )
        stage.rows = seen["suspects"]
    return Compared(
        read=read,
        mismatch=mismatch,
        unsettled=unsettled,
        open=seen["rows"],
        suspects=seen["suspects"],
    )


def diagnose(compared: Compared) -> Diagnosed:
    """Enter the findings about the cut as a whole, then those about each suspect."""
    read, ledger = compared.read, _ledger(compared.read)
    context, options, snapshot = read.captured.context, read.captured.options, read.snapshot
    with context.progress.stage("look up findings") as stage:
        ledger.enter(coverage.cut_findings(read.plan, read.frames, options.grace_seconds))
        previous = read.planned.previous
        judged = previous.batches if previous else {}
        ledger.enter(coverage.manifest_findings(read.frames, snapshot, judged))
        ledger.enter(stalled.findings(snapshot.stalled()))
        ledger.enter(coverage.retirement_findings(read.plan, read.frames, snapshot))
        missing, unread = context.run_store.missing([]), read.plan.log.unread_topics
        records = read.frames.records
        ledger.enter(unlogged_commits.findings(snapshot, records, previous, missing, unread))
        judgement = _judgement(read)
        expired: list[HalfId] = []
        if compared.suspects:
            expired = enter_suspects(compared, judgement, ledger)
        stage.rows = ledger.total
    return Diagnosed(compared=compared, ledger=ledger, judgement=judgement, expired=expired)


def diagnose_and_match(compared: Compared) -> tuple[Diagnosed, MatchChecks]:
    """Diagnose what differs, and match the commits with their records."""
    read = compared.read
    options, plan, frames = read.captured.options, read.plan, read.frames
    return both(
        frames.stage_uri,
        lambda: diagnose(compared),
        lambda: match_checks.collect(options, plan, frames, compared.mismatch),
    )


def check(diagnosed: Diagnosed, checks: MatchChecks) -> Checked:
    """Judge the matches by their order, their places and their clocks."""
    compared, ledger = diagnosed.compared, diagnosed.ledger
    read, captured = compared.read, compared.read.captured
    context, snapshot = captured.context, read.snapshot
    reported = () if read.planned.previous else captured.earlier_findings
    _, (sampled, aggregates) = both(
        read.frames.stage_uri,
        lambda: _enter_disorder(diagnosed, checks),
        lambda: (match_checks.sampled_rows(checks, reported), _aggregates(read, checks)),
    )
    with context.progress.stage("sample"):
        found = match_checks.sample_findings(checks, snapshot, context.log_reader, sampled)
        for some in chunks(found):
            ledger.keep(some)
    return Checked(diagnosed=diagnosed, checks=checks, aggregates=aggregates)


def _enter_disorder(diagnosed: Diagnosed, checks: MatchChecks) -> None:
    read = diagnosed.compared.read
    context = read.captured.context
    earlier = read.captured.earlier_findings if read.planned.previous else ()
    with context.progress.stage("order") as stage:
        for some in chunks(match_checks.order_findings(checks)):
            diagnosed.ledger.enter(some)
        diagnosed.ledger.enter(
            match_checks.misplaced_findings(checks, context.sources, read.snapshot, earlier)
        )
        stage.rows = checks.messages


def _aggregates(read: Read, checks: MatchChecks) -> Aggregates:
    captured = read.captured
    with captured.context.progress.stage("count for the charts"):
        folder = captured.options.folder_of(read.plan.run_id)
        return aggregates_of(read.frames, latency.latencies(checks.timed), folder)


def report(outcome: Outcome) -> Report:
    """Return the report of the run."""
    return summarize(outcome)


def _full_read_reason(options: Options, stored: StoredCheckpoint | None) -> str:
    """Return why a run without a cut to continue reads everything."""
    if options.full:
        return "asked for"
    if stored is not None:
        return "the previous run left no cut to continue"
    return "the first run"


def _reason_found_by_reading(planned: PlannedRead, frames: Frames) -> str | None:
    """Return why the new rows cannot be judged by themselves; None if they can."""
    if planned.previous is None:
        return None
    return late_arrivals.full_read_reason(planned.previous, frames)


def _ledger(read: Read) -> Ledger:
    context, options, plan = read.captured.context, read.captured.options, read.plan
    return Ledger(
        run_id=plan.run_id,
        folder=options.folder_of(plan.run_id) / "findings",
        accepted_ids=context.run_store.accepted(),
        rules=options.topic_rules,
        compacted_topics=plan.log.compacted_topics,
    )


def _judgement(read: Read) -> Judgement:
    plan, stored = read.plan, read.captured.stored
    carried = stored.carried if stored else ()
    retired_below = read.snapshot.retired_below()
    return Judgement(
        retired_below=retired_below,
        retired_leaves=read.snapshot.retired_leaves(),
        kept_below=read.snapshot.kept_below(retired_below),
        starts=plan.log.starts,
        ends={each.partition: each.end for each in plan.log.records},
        batches={each.shard: each.batch_no for each in plan.shards},
        earlier=earlier_runs(previous_of(stored), carried, plan.log.starts, plan.log.accepted),
        unread_topics=plan.log.unread_topics,
        expired_topics=plan.log.expired_topics,
        baselines=log_history.baselines(plan.log, plan.shards),
        unlisted_shards=plan.unlisted_shards,
        listed_from={each.shard: each.listed_from for each in plan.shards},
        continued=read.planned.previous is not None,
    )
