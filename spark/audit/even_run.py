"""A run without Spark: of a few new rows that are as they must be, or of none.

What such a run stores and reports is what Spark would. Where anything new is otherwise, it has
entered nothing yet, and Spark judges the same cut.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from outbox.errors import RecordUnread
from spark.audit.hand_over import Leftovers, checkpoint
from spark.audit.steps import Captured, committed_counts, run_fields
from spark.audit.suspects import chunks
from spark.checks import coverage, sample
from spark.columns.segments import BASELINE, IN_FLIGHT, JUDGED
from spark.compare.open_items import finding_row
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
            read = read_even(context, options, captured.log, snapshot, previous)
            stage.rows = len(read.new_records)
    except (Uneven, RecordUnread) as reason:
        context.progress.note(f"for Spark: {reason}")
        return None
    run = Run(**run_fields(captured, snapshot, read.planned))
    with context.progress.stage("look up findings") as stage:
        _enter(run, read)
        stage.rows = run.ledger.total
    return summarize(run, _aggregates(run, read), checkpoint(run, _leftovers(read.even)), {})


def _leftovers(even: Even) -> Leftovers:
    """Return what is not settled yet: records ahead of the cut. All else that is new is judged."""
    known = {each.half_id for each in even.commits}
    records = [record.as_carried() for _, record in even.ahead]
    return Leftovers(
        unjudged=lambda half_ids: [each for each in half_ids if each not in known],
        unlisted=lambda _: (),
        carried=lambda lasting: (*records, *map(finding_row, lasting)),
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
    one_of = max(1, len(read.new_records) // sample.MESSAGES)
    chosen = [each for each in read.even.pairs if each[1].digest % one_of == turn % one_of]
    return [
        {name: getattr(record, name) for name in ("half_id", *RECORD_COLUMNS)}
        | {"position": (commit.xid, commit.n), "decided_at": commit.committed_at}
        | {"record_time": record.published_at}
        for commit, record in sorted(chosen, key=lambda each: each[0].half_id)
    ][: 2 * sample.MESSAGES]


def _aggregates(run: Run, read: EvenRead) -> Aggregates:
    even, new = read.even, read.new_records
    standings = {JUDGED: len(even.pairs), IN_FLIGHT: len(even.in_flight), BASELINE: 0}
    ahead = sum(record.is_new for _, record in even.ahead)
    places = Counter((each.topic, each.producer_group) for each in new)
    records = [{"topic": t, "producer_group": g, "records": n} for (t, g), n in places.items()]
    committed = committed_counts(run) if even.commits else ()
    by_offset = sorted(read.records, key=lambda each: each.offset)
    return Aggregates(
        anchors={each.place: Anchor(each.offset, each.digest) for each in by_offset},
        read=read_counts([*committed, *records]),
        counts={**standings, "records": len(new), "ahead": ahead, "foreign": 0},
    )
