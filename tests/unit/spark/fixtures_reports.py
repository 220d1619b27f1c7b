"""Reports with invented findings, and past runs, for tests of what people see."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from outbox.messages.manifest import Position
from outbox.messages.message_id import HalfId
from outbox.reconciliation.finding import FindingChanges
from outbox.reconciliation.log import Partition
from outbox.reconciliation.run import FinishedRun
from outbox.reconciliation.snapshot import SnapshotIdentity
from spark.cut.cut_plan import Gap, LogCut, Plan, Range, ShardCut
from spark.findings.finding import Finding
from spark.findings.finding_class import Cause, Place
from spark.findings.ledger import Ledger
from spark.findings.verdict import verdict_of
from spark.report.report import Counts, Report

NOON = datetime(2026, 1, 1, 12, 0, 3, tzinfo=UTC)


def make_finding(number: int = 0, **fields: Any) -> Finding:
    """Return a finding of a message, lost unless said otherwise."""
    defaults: dict[str, Any] = {
        "cause": Cause.LOST_PUBLISHED,
        "subject": f"message:{number}",
        "half_id": HalfId(number),
        "message_id": f"00000000-0000-8000-8000-{number:012x}",
        "topic": "points",
        "shard": 3,
        "decision": "COMMIT",
    }
    return Finding(**{**defaults, **fields})


def make_report(
    findings: Sequence[Finding] = (), gaps: Sequence[Gap] = (), **fields: Any
) -> Report:
    """Return a report over one topic of two partitions."""
    counts = Counter(
        (each.graded, Place(each.topic or "", each.producer_group or "")) for each in findings
    )
    defaults: dict[str, Any] = {
        "run_id": "0123456789abcdef",
        "started_at": NOON,
        "plan": make_plan(gaps),
        "verdict": verdict_of({each for each, _ in counts}),
        "counts": Counts(
            judged=1204113,
            in_flight=2,
            baseline=0,
            records=1204113,
            ahead=0,
            foreign=0,
            prepared=4,
            parked=1,
            unverifiable=0,
        ),
        "duration_seconds": 12.5,
        "cause_counts": counts,
        "totals": Ledger(run_id="", folder=Path(), counts=counts).totals(),
        "findings": tuple(findings),
        "changes": FindingChanges(new=len(findings), resolved=0),
        "timings": {"compare": 1.25},
        "versions": {"spark": "4.0.0"},
        "folder": Path("reports/run_id=0123456789abcdef"),
    }
    return Report(**{**defaults, **fields})


def make_plan(gaps: Sequence[Gap] = ()) -> Plan:
    """Return the plan of such a report."""
    return Plan(
        log=LogCut(
            progress_topic="outbox.progress",
            manifests=(),
            records=tuple(
                Range(partition=Partition("points", number), start=0, end=9) for number in (0, 1)
            ),
            gaps=tuple(gaps),
        ),
        shards=(ShardCut(shard=3, batch_no=2, position=Position(9, 1)),),
        snapshot=SnapshotIdentity(exported_id="1", visible="760:760:", taken_at=NOON),
    )


def make_past_run(run_id: str, verdict: str, open_findings: int = 0, **fields: Any) -> FinishedRun:
    """Return a run before such a report, with that number of open findings."""
    defaults: dict[str, Any] = {
        "run_id": run_id,
        "previous_run_id": None,
        "mode": "full",
        "started_at": NOON,
        "cut_at": NOON,
        "finished_at": NOON,
        "verdict": verdict,
        "sentence": "",
        "totals": {"missing": open_findings},
        "reports": (),
    }
    return FinishedRun(**{**defaults, **fields})
