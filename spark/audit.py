"""One run, stage by stage: cut the log, snapshot the database, stage, compare, judge, publish.

Nothing is written but the stage, the report and the reconciliation's own tables; a run that fails
anywhere has changed no state.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from outbox.messages.message_id import LOW_BITS, HalfId
from outbox.reconciliation.ports import SourceSnapshot
from outbox.reconciliation.snapshot import RelayCut
from outbox.reconciliation.stored_run import Chain, ChainStep
from spark.checks import foreign_records, keys, latency, match_checks, misplaced_keys, stalled
from spark.checks.retention import Expired, has_expired, of_leaves
from spark.columns import manifests
from spark.columns.frames import Frames
from spark.columns.staging import staged
from spark.compare import bucket_checksums, matches, placement, sha256_check
from spark.compare.diagnosis import Judgement, is_unverifiable, of_suspect
from spark.compare.evidence import SUSPECTS_A_CALL, look_up
from spark.cut import carry_over, cut_plan, late_arrivals, log_history
from spark.cut.checkpoint import cut_of, no_cut_of, previous_of, window_of
from spark.cut.cut_capture import take_log_cut
from spark.cut.last_records import retired_ends, with_superseded
from spark.cut.reader import Planned, Reader, frames_of, planned, planned_whole
from spark.cut.time_bounds import EARLIEST, TimeBounds
from spark.cut.unverifiable import unverifiable_of
from spark.findings import finding
from spark.findings.ledger import Ledger
from spark.report.report import Report
from spark.report.summary import summed_up
from spark.run_context import Options, RunContext

BREAKS_READ: Final = 1000


def run_once(parts: RunContext, options: Options) -> Report:
    """Judge everything up to one cut and return the report; it is stored by the caller.

    Raises KafkaUnavailable, DatabaseUnavailable, SnapshotMismatch.
    """
    started_at = parts.clock.now()
    reader = Reader(sources=parts.sources, progress=parts.progress, stage_uri=options.stage_uri)
    with parts.progress.stage("cut of the log"):
        stored = parts.run_store.chain()
        unlisted = parts.source.unlisted()
        log = take_log_cut(
            parts.log_facts,
            options.progress_topic,
            lambda: [t for t in parts.source.topics() if t not in options.exclude_topics],
            parts.clock,
            parts.pause,
            log_history.state_of(parts.run_store.log_state()),
            options.accept_topics,
            _window(options, stored, unlisted),
        )
    with parts.source.snapshot() as snapshot:
        previous = None if options.full else previous_of(stored)
        reason = _why_whole(options, stored, log.window)
        made = planned(reader, log, unlisted, snapshot.identity, previous, reason)
        frames = frames_of(reader, made)
        why = _what_turned_up(parts, options, made, frames)
        if why is not None:
            made = planned_whole(reader, log, unlisted, snapshot.identity, why)
            frames = frames_of(reader, made)
        return _judge(parts, options, made, frames, snapshot, started_at, stored)


def _what_turned_up(
    parts: RunContext, options: Options, made: Planned, frames: Frames
) -> str | None:
    """Return why what is new cannot be judged by itself; None if it can."""
    if made.previous is None:
        return None
    partitions = misplaced_keys.homed(made.plan.log.partition_counts, options.topic_rules)
    free = partial(parts.sources.read_unrequested, made.plan.snapshot)
    missed = late_arrivals.why_whole(made.previous, frames)
    return missed or misplaced_keys.why_whole(made.previous, frames, partitions, free)


def _window(options: Options, stored: Chain | None, unlisted: Sequence[RelayCut]) -> TimeBounds:
    """Return the times that bound the run.

    A shard without manifests is judged from its beginning, so then the log is read from there.
    """
    window = window_of(stored, options.since, options.until, full=options.full)
    return replace(window, whole_log=bool(unlisted))


def _why_whole(options: Options, stored: Chain | None, window: TimeBounds) -> str:
    """Return why a run without a cut to continue reads everything."""
    if options.full:
        return "asked for"
    if stored is not None:
        return "the run before left no cut to continue"
    since = window.since
    return "the first run" if since == EARLIEST else f"the first run, from {since.isoformat()}"


def _judge(
    parts: RunContext,
    options: Options,
    planned: Planned,
    frames: Frames,
    snapshot: SourceSnapshot,
    started_at: datetime,
    stored: Chain | None,
) -> Report:
    plan, previous = planned.plan, planned.previous
    told = tuple(carry_over.findings_of(stored.carried)) if stored else ()
    ledger = _ledger(parts, options, plan)
    with parts.progress.stage("compare") as stage:
        odd = bucket_checksums.mismatches(
            frames, options.mode, options.stage_uri, options.bucket_messages
        )
        unsettled = bucket_checksums.open_ids(frames.commits, frames.records, odd)
        dirty = staged(unsettled, f"{options.stage_uri}/dirty")
        suspects = dirty.where("suspect")
        stage.rows = suspects.count()
    with parts.progress.stage("look up findings") as looked_up:
        ledger.enter(_findings_of_cut(options, plan, frames))
        ledger.enter(stalled.findings(snapshot.stuck()))
        ledger.enter(_retired_unread(plan, frames, snapshot))
        judgement = Judgement(
            retired_below=snapshot.retired_below(),
            starts={each.partition: each.start for each in plan.log.records},
            unread_topics=plan.log.unread_topics,
            expired_topics=plan.log.expired_topics,
            compacted_topics=plan.log.compacted_topics,
            baselines=log_history.baselines(plan.log, plan.shards),
            unlisted_shards=plan.unlisted_shards,
            continued=previous is not None,
        )
        expired: list[HalfId] = []
        if stage.rows:
            expired = _enter_suspects(parts, judgement, frames, suspects, snapshot, ledger)
        looked_up.rows = ledger.total
    paired = _paired(options, plan, frames, odd)
    _enter_matched(parts, paired, snapshot, ledger, told)
    with parts.progress.stage("carry what is open") as carried:
        before = [each for each in told if previous and not each.by_sha256]
        ledger.enter(foreign_records.findings(frames.new_records, options.topic_rules, before))
        ledger.keep(before)
        ledger.gone = unverifiable_of(parts.run_store, frames.commits, judgement, ledger.expired)
        open_ids = carry_over.kept_open(dirty, judgement.retired_below, expired)
        rows = carry_over.carried_rows(open_ids, frames, ledger.lasting.values())
        carried.rows = None if rows is None else len(rows)
        free = partial(parts.sources.read_unrequested, plan.snapshot)
        strays = paired.strays
        lie = (
            misplaced_keys.still_remembered(previous, strays.partitions)
            if previous
            else misplaced_keys.remembered(strays, free)
        )
    step = ChainStep(
        after=stored.run_id if stored else None,
        cut=no_cut_of(plan) if rows is None else cut_of(plan, planned.marks, previous, lie),
        carried=carry_over.always(ledger.lasting.values()) if rows is None else rows,
        positions={} if rows is None else {each.shard: each.position for each in plan.shards},
    )
    report = summed_up(
        parts, options, plan, frames, odd, paired.timed, snapshot, ledger, started_at
    )
    return replace(report, step=step, dirty_ratio=odd.dirty_ratio if odd else None)


def _ledger(parts: RunContext, options: Options, plan: cut_plan.Plan) -> Ledger:
    return Ledger(
        spark_session=parts.sources.spark_session,
        run_id=plan.run_id,
        uri=f"{options.report_dir}/run_id={plan.run_id}/findings",
        accepted_ids=parts.run_store.accepted(),
        rules=options.topic_rules,
        compacted_topics=plan.log.compacted_topics,
    )


def _findings_of_cut(
    options: Options, plan: cut_plan.Plan, frames: Frames
) -> Sequence[finding.Finding]:
    """Return what is wrong with shards and partitions as a whole."""
    cut_at = F.lit(plan.cut_at)
    overdue = placement.late_by_shard(frames.segments, options.grace_seconds, cut_at).collect()
    broken = manifests.breaks(frames.manifests).limit(BREAKS_READ).collect()
    return (
        *(finding.of_gap(each) for each in (*plan.log.gaps, *plan.log.changes)),
        *finding.of_breaks(broken),
        *finding.of_overdue(overdue, options.grace_seconds),
    )


def _retired_unread(
    plan: cut_plan.Plan, frames: Frames, snapshot: SourceSnapshot
) -> Sequence[finding.Finding]:
    """Return what the tables kept no longer than it took to read it."""
    kept_from = snapshot.retired_below() >> LOW_BITS
    ends = retired_ends(frames.manifests, kept_from)
    return of_leaves(plan.log.before or log_history.LogState(), ends, kept_from)


def _enter_suspects(
    parts: RunContext,
    judgement: Judgement,
    frames: Frames,
    suspect: DataFrame,
    snapshot: SourceSnapshot,
    ledger: Ledger,
) -> list[HalfId]:
    """Judge the suspects, a bounded number at a time; return those that nothing can settle."""
    gathered = placement.evidence(suspect, frames.records, frames.listings)
    expired, gone = Expired(), list[HalfId]()
    for rows in _chunks(gathered.toLocalIterator(prefetchPartitions=True)):
        looked_up = look_up(rows, snapshot, parts.log_facts)
        suspects = with_superseded(looked_up, judgement, frames.records)
        ledger.unverifiable += sum(is_unverifiable(each, judgement) for each in suspects)
        ledger.enter(found for each in suspects for found in of_suspect(each, judgement))
        expired.note(suspects, judgement)
        gone += [each.half_id for each in suspects if has_expired(each, judgement)]
    ledger.enter(expired.findings(judgement))
    ledger.expired += expired.half_ids
    return gone


def _paired(
    options: Options, plan: cut_plan.Plan, frames: Frames, odd: bucket_checksums.Mismatch | None
) -> match_checks.MatchChecks:
    """Lay each commit beside the records of its content."""
    uri = options.stage_uri
    paired = matches.matches_of(frames, odd, uri)
    counts = plan.log.partition_counts
    known = keys.known_count(paired.plain, keys.opened(paired.plain, counts))
    homed = misplaced_keys.homed(counts, options.topic_rules)
    timed = latency.timed(frames.commits, frames.new_records, latency.one_in(frames.size))
    return match_checks.MatchChecks(
        pairs=paired,
        known=known,
        strays=misplaced_keys.misplaced_records(keys.keyed(known), homed, uri),
        timed=staged(timed, f"{uri}/timed"),
        commits=frames.new_commits,
        records=frames.records,
        manifests=frames.manifests,
        plan=plan,
        stage_uri=uri,
        rules=options.topic_rules,
        messages=frames.size,
        digest=options.digest,
    )


def _enter_matched(
    parts: RunContext,
    paired: match_checks.MatchChecks,
    snapshot: SourceSnapshot,
    ledger: Ledger,
    told: Sequence[finding.Finding],
) -> None:
    """Judge what matched by its order, its places, its clocks and what was ``told`` before."""
    with parts.progress.stage("order") as stage:
        for some in _chunks(match_checks.of_order(paired, parts.sources)):
            ledger.enter(some)
        stage.rows = paired.messages
    with parts.progress.stage("sample"):
        for some in _chunks(each for each in told if each.by_sha256):
            ledger.keep(sha256_check.still_altered(some, snapshot, parts.log_facts, paired.starts))
        for some in _chunks(match_checks.of_sample(paired, snapshot, parts.log_facts)):
            ledger.keep(some)


def _chunks(rows: Iterator[Any]) -> Iterator[list[Any]]:
    while chunk := list(islice(rows, SUSPECTS_A_CALL)):
        yield chunk
