"""A run without Spark: of a few new rows that are as they must be, or of none.

What such a run stores and reports is what Spark would. Where anything new is otherwise, it has
entered nothing yet, and Spark judges the same cut.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from outbox.errors import RecordUnread
from outbox.reconciliation.log import Partition
from spark.audit.hand_over import Leftovers, checkpoint, open_retired
from spark.audit.steps import Captured, committed_counts, run_fields
from spark.checks import coverage, sample
from spark.checks.open_findings import have_changed
from spark.columns.segments import BASELINE, IN_FLIGHT, JUDGED
from spark.compare.evidence import chunks
from spark.cut.checkpoint import previous_of
from spark.cut.log_state import Anchor
from spark.even.even_read import EvenRead, read_even
from spark.even.evenness import Even
from spark.even.rows import Uneven
from spark.findings.finding import RECORD_COLUMNS
from spark.report.aggregates import Aggregates
from spark.report.report import Report
from spark.report.summary import summarize
from spark.report.topic_counts import read_counts
from spark.run_context import Run

if TYPE_CHECKING:
    from outbox.postgres.reconciliation.source import PostgresSnapshot


def even_report(captured: Captured, snapshot: PostgresSnapshot) -> Report | None:
    """Return the report of the run; None if Spark has to judge it."""
    context, options = captured.context, captured.options
    previous = None if options.full else previous_of(captured.stored)
    if previous is None or not options.small_rows:
        return None
    try:
        with context.progress.stage("read what is new") as stage:
            if have_changed(captured.earlier, snapshot):
                raise Uneven("a message with an open finding was decided, dropped or released")
            read = read_even(context, options, captured.log, snapshot, previous)
            stage.rows = len(read.records)
    except (Uneven, RecordUnread) as reason:
        context.progress.note(f"for Spark: {reason}")
        return None
    run = Run(**run_fields(captured, snapshot, read.planned))
    with context.progress.stage("look up findings") as stage:
        _enter(run, read)
        stage.rows = run.ledger.total
    aggregates, left = _aggregates(run, read), _leftovers(run, read.even)
    return summarize(run, aggregates, checkpoint(run, left, aggregates.anchors), {})


def _leftovers(run: Run, even: Even) -> Leftovers:
    """Return what the run cannot settle: records ahead of the cut, and open findings."""
    offsets = defaultdict[Partition, list[int]](list)
    for _, record in even.ahead:
        offsets[record.place].append(record.offset)
    return Leftovers(
        ahead={partition: min(some) for partition, some in offsets.items()},
        unjudged=open_retired(run),
    )


def _enter(run: Run, read: EvenRead) -> None:
    """Enter what PostgreSQL alone shows, and what a sample does."""
    # With overdue commits, or with a manifest whose commits are dropped, it would not be even.
    run.ledger.enter(coverage.findings(run, (), {}))
    rows = _sampled(read, int(run.plan.run_id, 16))
    for some in chunks(sample.findings(rows, run.snapshot, run.earlier)):
        run.ledger.keep(some)


def _sampled(read: EvenRead, turn: int) -> list[dict[str, Any]]:
    """Return the rows that ``sample.sample`` returns."""
    one_of = max(1, len(read.records) // sample.MESSAGES)
    chosen = [each for each in read.even.pairs if each[1].digest % one_of == turn % one_of]
    return [
        {name: getattr(record, name) for name in ("half_id", *RECORD_COLUMNS)}
        | {"position": (commit.xid, commit.n), "decided_at": commit.committed_at}
        | {"record_time": record.published_at}
        for commit, record in sorted(chosen, key=lambda each: each[0].half_id)
    ][: 2 * sample.MESSAGES]


def _aggregates(run: Run, read: EvenRead) -> Aggregates:
    even, new = read.even, read.records
    standings = {JUDGED: len(even.pairs), IN_FLIGHT: len(even.in_flight), BASELINE: 0}
    places = Counter((each.topic, each.producer_group) for each in new)
    records = [{"topic": t, "producer_group": g, "records": n} for (t, g), n in places.items()]
    committed = committed_counts(run) if even.commits else ()
    by_offset = sorted(read.records, key=lambda each: each.offset)
    return Aggregates(
        anchors={each.place: Anchor(each.offset, each.digest) for each in by_offset},
        read=read_counts([*committed, *records]),
        counts={**standings, "records": len(new), "ahead": len(even.ahead), "foreign": 0},
    )
