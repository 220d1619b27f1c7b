"""Sets the metrics of reconciliations from what the runs stored; the catalogue names them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, get_args

from outbox.reconciliation.finding import FindingKind, OpenFindingCount
from outbox.reconciliation.run import LastRun, Verdict
from outbox.telemetry.metrics import Metrics

INFO: Final = "info"


def set_open_findings(counts: Sequence[OpenFindingCount], metrics: Metrics) -> None:
    """Set the gauges of open findings; a kind without an open finding is 0."""
    metrics["reconcile_findings"].clear()
    for kind in get_args(FindingKind):
        above_info = (c.findings for c in counts if c.kind == kind and c.severity != INFO)
        metrics["reconcile_discrepancies"].labels(kind).set(sum(above_info))
    for count in counts:
        labels = (count.kind, count.severity, count.topic)
        metrics["reconcile_findings"].labels(*labels).set(count.findings)


def set_last_run(last: LastRun, metrics: Metrics) -> None:
    """Set the metrics of the newest run."""
    for verdict in get_args(Verdict):
        metrics["reconcile_verdict"].labels(verdict).set(verdict == last.verdict)
    if last.coverage is not None:
        metrics["reconcile_coverage_ratio"].set(last.coverage)
    metrics["reconcile_inconclusive_runs"].set(last.inconclusive)
    metrics["reconcile_cut_lag_seconds"].set(last.cut_age)
    finished = metrics["reconcile_last_success_timestamp_seconds"]
    finished.set(last.succeeded_at.timestamp())
