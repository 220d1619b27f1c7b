"""Findings about whole shards, partitions and topics: what a run could not read or judge."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from outbox.messages.manifest import Kind, Position
from outbox.messages.message import HalfMessage
from outbox.messages.message_id import LOW_BITS, HalfId
from outbox.reconciliation.finding import PERMANENT_CAUSES
from outbox.reconciliation.log import WHOLE_TOPIC
from spark.checks import stored_rows
from spark.checks.manifest_contents import content_breaks
from spark.checks.retention import retired_findings, with_unlisted_ends
from spark.columns import manifests
from spark.columns.collected_times import utc_text
from spark.columns.frames import Frames
from spark.compare.decision_table import Decision
from spark.cut.cut_plan import Gap, Plan
from spark.cut.log_state import LogState
from spark.findings.finding import Finding
from spark.findings.finding_class import Cause
from spark.run_context import Run

if TYPE_CHECKING:
    from outbox.postgres.reconciliation.source import PostgresSnapshot

BREAK: Final = Cause.MANIFEST_BREAK_CHAIN
BREAKS_READ: Final = 1000
BREAKS_SHOWN: Final = 20


def findings(run: Run, late: Iterable[Any], retired: Mapping[int, Position]) -> Iterator[Finding]:
    """Yield what is wrong with shards and partitions as a whole, and what PostgreSQL alone shows.

    ``late`` are the rows of ``placement.late_by_shard``; ``retired`` is by shard the end of its
    last batch that the tables have dropped, as far as the run has read its manifest.
    """
    log, snapshot, previous = run.plan.log, run.snapshot, run.planned.previous
    yield from map(gap_finding, (*log.gaps, *log.changes))
    yield from overdue_findings(late, run.options.grace_seconds)
    yield from retirement_findings(run.plan, retired, snapshot)
    yield from stored_rows.findings(snapshot, previous)


def manifest_findings(
    frames: Frames,
    snapshot: PostgresSnapshot,
    judged: Mapping[int, int],
    unlogged: Sequence[HalfId],
    before: Iterable[Finding],
) -> tuple[Finding, ...]:
    """Return the shards whose manifests do not chain, or list what the stores do not have.

    ``judged`` is by shard the last batch that an earlier run has compared. ``unlogged`` are the
    messages that the commit log should have, ``before`` what earlier runs have found.
    """
    kept_from = snapshot.retired_below() >> LOW_BITS
    broken = manifests.breaks(frames.manifests).limit(BREAKS_READ)
    differing = content_breaks(frames, kept_from, snapshot.retired_leaves(), judged)
    if differing is not None:
        broken = broken.unionByName(differing.limit(BREAKS_READ))
    found = [row.asDict() for row in broken.collect()]
    names = [each.half for each in snapshot.halves(unlogged).values()] if found else []
    return break_findings(found, names, before)


def retirement_findings(
    plan: Plan, retired: Mapping[int, Position], snapshot: PostgresSnapshot
) -> tuple[Finding, ...]:
    """Return what the tables dropped before a run had read it."""
    kept_from, before = snapshot.retired_below() >> LOW_BITS, plan.log.before or LogState()
    if not (kept_from and before.positions):
        return ()
    ends = with_unlisted_ends(retired, plan.shards, kept_from)
    return retired_findings(before, ends, kept_from)


def retired_ends(listed: DataFrame, kept_from: int) -> dict[int, Position]:
    """Return per shard the end of its last batch with messages below a transaction id."""
    if not kept_from:
        return {}
    batches = (F.col("kind") == int(Kind.BATCH)) & (F.col("entries") > 0)
    rows = (
        listed.where(F.col("intact") & batches & (F.col("to_xid") < kept_from))
        .groupBy("shard")
        .agg(F.max(F.struct("to_xid", "to_n")).alias("end"))
        .collect()
    )
    return {row["shard"]: Position(*row["end"]) for row in rows}


def gap_finding(gap: Gap) -> Finding:
    """Return the finding of a partition, or a whole topic, that was not read completely.

    What nothing undoes is another finding each time, so that accepting one accepts no later one.
    """
    topic, number = gap.partition
    whole = number == WHOLE_TOPIC
    place = f"topic:{topic}" if whole else f"partition:{topic}/{number}"
    cause = Cause(gap.cause)
    subjects: dict[str, str] = {
        **dict.fromkeys((Cause.UNVERIFIABLE_NOT_READ, Cause.UNVERIFIABLE_OPEN_TRANSACTION), place),
        **dict.fromkeys(PERMANENT_CAUSES, f"{place}:{cause}:{gap.reason}"),
    }
    return Finding(
        cause=cause,
        subject=subjects.get(cause, f"{place}:{cause}"),
        topic=topic,
        partition=None if whole else number,
        evidence={"reason": gap.reason},
    )


def overdue_findings(rows: Iterable[Any], grace_seconds: int) -> tuple[Finding, ...]:
    """Return one finding for each shard with commits that wait longer than the grace."""
    return tuple(
        Finding(
            cause=Cause.UNPUBLISHED_OVERDUE,
            subject=f"shard:{row['shard']}",
            shard=row["shard"],
            decision=Decision.COMMIT.value,
            evidence={
                "overdue": row["overdue"],
                "oldest_committed_at": utc_text(row["oldest"]),
                "grace_seconds": grace_seconds,
            },
        )
        for row in rows
        if row["overdue"]
    )


def break_findings(
    rows: Iterable[Mapping[str, Any]],
    unlogged: Iterable[HalfMessage] = (),
    before: Iterable[Finding] = (),
) -> tuple[Finding, ...]:
    """Return one finding for each shard whose manifests are wrong, with the first breaks.

    It keeps what the finding of the shard had ``before``: no later run reads that again. The
    messages of the shard that are ``unlogged`` are named, because their rows may be the ones that
    the manifests list.
    """
    known = {each.shard: each.evidence for each in before if each.cause is BREAK}
    breaks: dict[int, list[Mapping[str, Any]]] = {}
    for row in rows:
        breaks.setdefault(row["partition"], []).append(row)
    names: dict[int, list[str]] = {}
    for half in unlogged:
        names.setdefault(half.shard, []).append(str(half.message_id))
    return tuple(
        _break_finding(shard, breaks[shard], sorted(names.get(shard, ())), known.get(shard, {}))
        for shard in sorted(breaks)
    )


def _break_finding(
    shard: int, rows: Iterable[Mapping[str, Any]], names: list[str], known: Mapping[str, Any]
) -> Finding:
    by_place = {(row["offset"], row["fault"]): row for row in (*known.get("breaks", ()), *rows)}
    missing = dict.fromkeys((*known.get("not_in_commit_log", ()), *names))
    shown = [by_place[place] for place in sorted(by_place)]
    evidence: dict[str, Any] = {"breaks": shown[:BREAKS_SHOWN]}
    if missing:
        evidence["not_in_commit_log"] = [*missing][:BREAKS_SHOWN]
    return Finding(cause=BREAK, subject=f"shard:{shard}", shard=shard, evidence=evidence)
