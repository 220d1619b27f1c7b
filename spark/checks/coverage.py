"""Findings about whole shards, partitions and topics: what a run could not read or judge."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from outbox.messages.manifest import Position
from outbox.messages.message import Resolution
from outbox.messages.message_id import LOW_BITS
from outbox.reconciliation.finding import PERMANENT_CAUSES
from outbox.reconciliation.snapshot import KnownHalf
from spark.checks import stored_rows
from spark.checks.manifest_contents import content_breaks
from spark.checks.retention import retired_findings
from spark.columns import manifests
from spark.columns.collected_times import utc_text
from spark.columns.frames import Frames
from spark.cut.cut_plan import Gap
from spark.cut.log_state import LogState
from spark.findings.finding import Finding
from spark.findings.finding_class import Cause
from spark.run_context import Run

if TYPE_CHECKING:
    from outbox.postgres.reconciliation.source import PostgresSnapshot

BREAK: Final = Cause.MANIFEST_BREAK_CHAIN
UNREAD: Final = (Cause.UNVERIFIABLE_NOT_READ, Cause.UNVERIFIABLE_OPEN_TRANSACTION)
BREAKS_READ: Final = 1000
BREAKS_SHOWN: Final = 20


def findings(run: Run, late: Iterable[Any], retired: Mapping[int, Position]) -> Iterator[Finding]:
    """Yield what is wrong with shards and partitions as a whole, and what PostgreSQL alone shows.

    ``late`` are the rows of ``placement.late_by_shard``; ``retired`` is by shard the end of its
    last batch that the tables have dropped, as far as the run has read its manifest.
    """
    plan, snapshot = run.plan, run.snapshot
    before, kept_from = plan.log.before or LogState(), snapshot.retired_below() >> LOW_BITS
    yield from map(gap_finding, (*plan.log.gaps, *plan.log.changes))
    yield from overdue_findings(late, run.options.grace_seconds)
    yield from retired_findings(before, retired, plan.shards, kept_from)
    yield from stored_rows.findings(snapshot, run.planned.previous)


def manifest_breaks(
    frames: Frames, snapshot: PostgresSnapshot, judged: Mapping[int, int]
) -> list[dict[str, Any]]:
    """Return the manifests that do not chain, or list what the stores do not have.

    ``judged`` is by shard the last batch that an earlier run has compared.
    """
    kept_from = snapshot.retired_below() >> LOW_BITS
    broken = manifests.breaks(frames.manifests).limit(BREAKS_READ)
    differing = content_breaks(frames, kept_from, snapshot.retired_leaves(), judged)
    if differing is not None:
        broken = broken.unionByName(differing.limit(BREAKS_READ))
    return [row.asDict() for row in broken.collect()]


def gap_finding(gap: Gap) -> Finding:
    """Return the finding of a partition, or a whole topic, that was not read completely.

    What nothing undoes is another finding each time, so that accepting one accepts no later one.
    """
    cause = Cause(gap.cause)
    which = "" if cause in UNREAD else f":{cause}"
    if cause in PERMANENT_CAUSES:
        which += f":{gap.reason}"
    return Finding.about_partition(cause, gap.partition, which, {"reason": gap.reason})


def overdue_findings(rows: Iterable[Any], grace_seconds: int) -> Iterator[Finding]:
    """Yield one finding for each shard with commits that wait longer than the grace."""
    for row in rows:
        if row["overdue"]:
            yield Finding(
                cause=Cause.UNPUBLISHED_OVERDUE,
                subject=f"shard:{row['shard']}",
                shard=row["shard"],
                decision=Resolution.COMMIT,
                evidence={
                    "overdue": row["overdue"],
                    "oldest_committed_at": utc_text(row["oldest"]),
                    "grace_seconds": grace_seconds,
                },
            )


def break_findings(
    rows: Iterable[Mapping[str, Any]],
    unlogged: Iterable[KnownHalf] = (),
    before: Iterable[Finding] = (),
) -> Iterator[Finding]:
    """Yield one finding for each shard whose manifests are wrong, with the first breaks.

    It keeps what the finding of the shard had ``before``: no later run reads that again. The
    messages of the shard that are ``unlogged`` are named, because their rows may be the ones that
    the manifests list.
    """
    known = {each.shard: each.evidence for each in before if each.cause is BREAK}
    shard_of = itemgetter("partition")
    for shard, some in groupby(sorted(rows, key=shard_of), shard_of):
        earlier = known.get(shard, {})
        breaks = {(row["offset"], row["fault"]): row for row in (*earlier.get("breaks", ()), *some)}
        lost = sorted(str(each.half.message_id) for each in unlogged if each.half.shard == shard)
        names = dict.fromkeys((*earlier.get("not_in_commit_log", ()), *lost))
        shown = [breaks[place] for place in sorted(breaks)][:BREAKS_SHOWN]
        missing = {"not_in_commit_log": [*names][:BREAKS_SHOWN]} if names else {}
        evidence = {"breaks": shown, **missing}
        yield Finding(cause=BREAK, subject=f"shard:{shard}", shard=shard, evidence=evidence)
