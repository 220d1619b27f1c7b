"""Sets the metrics of reconciliations from what the runs stored; the catalogue names them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from outbox.reconciliation.finding import OpenFindingCount
from outbox.reconciliation.run import MeasuredRun
from outbox.telemetry.metrics import Metrics

KINDS: Final = (
    *("missing", "duplicate", "unexpected", "mismatch"),
    *("disordered", "stuck", "latency", "coverage"),
)
VERDICTS: Final = ("clean", "findings", "inconclusive")
SIDES: Final = {"committed": "judged", "records": "records"}
"""The label of each side of the comparison, and the name of its count in a run."""
INFO: Final = "info"


def set_open_findings(counts: Sequence[OpenFindingCount], metrics: Metrics) -> None:
    """Set the gauges of open findings; a kind without an open finding is 0."""
    metrics["reconcile_findings"].clear()
    for kind in KINDS:
        above_info = (c.findings for c in counts if c.kind == kind and c.severity != INFO)
        metrics["reconcile_discrepancies"].labels(kind).set(sum(above_info))
    for count in counts:
        labels = (count.kind, count.severity, count.topic)
        metrics["reconcile_findings"].labels(*labels).set(count.findings)


def set_last_run(last: MeasuredRun, metrics: Metrics) -> None:
    """Set the metrics of the newest run; labels that only an older run had are removed."""
    for verdict in VERDICTS:
        metrics["reconcile_verdict"].labels(verdict).set(verdict == last.verdict)
    for side, name in SIDES.items():
        metrics["reconcile_messages_checked"].labels(side).set(last.counts.get(name, 0))
    metrics["reconcile_duration_seconds"].clear()
    for stage, seconds in last.timings.items():
        metrics["reconcile_duration_seconds"].labels(stage).set(seconds)
    metrics["reconcile_publish_latency_seconds"].clear()
    for topic, quantiles in last.latency.items():
        for quantile, seconds in quantiles.items():
            metrics["reconcile_publish_latency_seconds"].labels(topic, quantile).set(seconds)
    if last.dirty_ratio is not None:
        metrics["reconcile_dirty_bucket_ratio"].set(last.dirty_ratio)
    if last.coverage is not None:
        metrics["reconcile_coverage_ratio"].set(last.coverage)
    metrics["reconcile_inconclusive_runs"].set(last.inconclusive)
    metrics["reconcile_cut_lag_seconds"].set(last.cut_age)
    finished = metrics["reconcile_last_success_timestamp_seconds"]
    finished.set(last.succeeded_at.timestamp())
