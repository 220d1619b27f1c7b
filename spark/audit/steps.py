"""The steps of an audit. Each adds its findings to the ledger of the run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from outbox.messages.message_id import HalfId
from outbox.reconciliation.run import StoredCheckpoint
from spark.audit import late_arrivals
from spark.audit.suspects import chunks, enter_suspects
from spark.checks import coverage, latency, match_checks, stalled, stored_rows, unlogged_commits
from spark.checks.match_checks import MatchChecks
from spark.columns.staging import run_folder
from spark.compare.bucket_checksums import Differences
from spark.compare.expiry import earlier_runs
from spark.compare.facts import Judgement
from spark.compare.open_items import carried_findings
from spark.cut import log_history
from spark.cut.checkpoint import previous_of, unread_ranges
from spark.cut.cut_capture import capture_log_cut
from spark.cut.cut_plan import LogCut, expired_shards
from spark.cut.log_state import state_of
from spark.cut.reader import Reader, length, plan_full_read, plan_read, read_frames
from spark.cut.run_size import RunSize, both, sized_run
from spark.findings.ledger import Ledger
from spark.report.aggregates import Aggregates, aggregates_of
from spark.run_context import Options, Run, RunContext

if TYPE_CHECKING:
    from outbox.postgres.reconciliation.source import PostgresSnapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """The cut of the log, and where the last run ended."""

    context: RunContext
    options: Options
    started_at: datetime
    stored: StoredCheckpoint | None
    log: LogCut


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
    expired = expired_shards(listed, log.manifests)
    return Captured(
        context=context,
        options=options,
        started_at=started_at,
        stored=stored,
        log=replace(log, excluded=options.exclude_topics, expired_shards=expired),
    )


@contextmanager
def staged(captured: Captured) -> Iterator[Captured]:
    """Give the run a stage of its own, and remove it at the end."""
    options, session = captured.options, captured.context.sources.spark_session
    with run_folder(session, options.stage_uri) as uri:
        yield replace(captured, options=replace(options, stage_uri=uri))


def sized(captured: Captured) -> AbstractContextManager[RunSize]:
    """Open the choice between a small run and any other."""
    options, session = captured.options, captured.context.sources.spark_session
    settings = options.small_settings if options.small_rows else {}
    return sized_run(session, settings, options.stage_uri, options.small_rows)


def read(captured: Captured, snapshot: PostgresSnapshot, size: RunSize) -> Run:
    """Read what is new since the last cut, or everything if the new rows alone cannot be judged."""
    context, options, log = captured.context, captured.options, captured.log
    stored = captured.stored
    previous = None if options.full else previous_of(stored)
    unread = unread_ranges(log.records, previous.ends) if previous else log.records
    reader = Reader(
        sources=context.sources,
        progress=context.progress,
        stage_uri=size.stage_for(length(unread)),
        size=size,
    )
    planned = plan_read(reader, log, snapshot.identity, previous, _full_read_reason(captured))
    progress = snapshot.relay_progress()
    frames = read_frames(reader, planned, progress)
    late = planned.previous and late_arrivals.full_read_reason(planned.previous, frames)
    if late:
        planned = plan_full_read(reader, log, snapshot.identity, late)
        frames = read_frames(reader, planned, progress)
    run_id = planned.plan.run_id
    return Run(
        context=context,
        options=options,
        started_at=captured.started_at,
        stored=stored,
        earlier=tuple(carried_findings(stored.carried)) if stored else (),
        snapshot=snapshot,
        planned=planned,
        frames=frames,
        ledger=Ledger(
            run_id=run_id,
            folder=options.folder_of(run_id) / "findings",
            accepted_ids=context.run_store.accepted(),
            rules=options.topic_rules,
            compacted_topics=log.compacted_topics,
        ),
    )


def judgement_of(run: Run) -> Judgement:
    """Return the facts about the run by which a suspect is judged."""
    plan, snapshot, stored = run.plan, run.snapshot, run.stored
    carried = stored.carried if stored else ()
    retired_below = snapshot.retired_below()
    new_topics = plan.log.accepted | plan.log.former_ids.keys()
    return Judgement(
        retired_below=retired_below,
        retired_leaves=snapshot.retired_leaves(),
        kept_below=snapshot.kept_below(retired_below),
        starts=plan.log.starts,
        ends={each.partition: each.end for each in plan.log.records},
        batches={each.shard: each.batch_no for each in plan.shards},
        earlier=earlier_runs(previous_of(stored), carried, plan.log.starts, new_topics),
        unread_topics=plan.log.unread_topics,
        expired_topics=plan.log.expired_topics,
        baselines=log_history.baselines(plan.log, plan.shards),
        unlisted_shards=plan.unlisted_shards,
        listed_from={each.shard: each.listed_from for each in plan.shards},
        continued=run.continued,
    )


def diagnose_and_match(
    run: Run, found: Differences, judgement: Judgement
) -> tuple[list[HalfId], MatchChecks]:
    """Diagnose what differs, and match the commits with their records.

    The ids are of messages that nothing can settle any more.
    """
    return both(
        run.frames.stage_uri,
        lambda: _diagnose(run, found, judgement),
        lambda: match_checks.collect(run, found.mismatch),
    )


def _diagnose(run: Run, found: Differences, judgement: Judgement) -> list[HalfId]:
    """Enter the findings about the cut as a whole, then those about each suspect."""
    plan, frames, snapshot, ledger = run.plan, run.frames, run.snapshot, run.ledger
    previous = run.planned.previous
    with run.context.progress.stage("look up findings") as stage:
        ledger.enter(coverage.cut_findings(plan, frames, run.options.grace_seconds))
        judged = previous.batches if previous else {}
        missing, unread = run.context.run_store.missing([]), plan.log.unread_topics
        unlogged = unlogged_commits.unlogged(snapshot, previous, missing)
        broken = coverage.manifest_findings(frames, snapshot, judged, unlogged, run.earlier)
        ledger.enter(broken)
        ledger.enter(stalled.findings(snapshot.stalled()))
        ledger.enter(coverage.retirement_findings(plan, frames, snapshot))
        ledger.enter(unlogged_commits.findings(unlogged, snapshot, frames.records, unread))
        ledger.enter(stored_rows.findings(snapshot, previous))
        expired = enter_suspects(run, found, judgement) if found.suspects else []
        stage.rows = ledger.total
    return expired


def check(run: Run, checks: MatchChecks) -> Aggregates:
    """Judge the matches by their order, their places and their clocks; count for the report."""
    reported = () if run.continued else run.earlier
    _, (sampled, aggregates) = both(
        run.frames.stage_uri,
        lambda: _enter_disorder(run, checks),
        lambda: (match_checks.sampled_rows(run, checks, reported), _aggregates(run, checks)),
    )
    with run.context.progress.stage("sample"):
        for some in chunks(match_checks.sample_findings(run, checks, sampled)):
            run.ledger.keep(some)
    return aggregates


def _enter_disorder(run: Run, checks: MatchChecks) -> None:
    with run.context.progress.stage("order") as stage:
        for some in chunks(match_checks.order_findings(run, checks)):
            run.ledger.enter(some)
        run.ledger.enter(match_checks.misplaced_findings(run, checks))
        stage.rows = run.frames.size


def _aggregates(run: Run, checks: MatchChecks) -> Aggregates:
    plan, previous = run.plan, run.planned.previous
    with run.context.progress.stage("count for the report"):
        committed = run.context.sources.read_committed(
            plan.snapshot, plan.shards, previous.positions if previous else {}
        )
        return aggregates_of(run.frames, latency.latencies(checks.timed), committed)


def _full_read_reason(captured: Captured) -> str:
    """Return why a run without a cut to continue reads everything."""
    if captured.options.full:
        return "asked for"
    return "the previous run left no cut to continue" if captured.stored else "the first run"
