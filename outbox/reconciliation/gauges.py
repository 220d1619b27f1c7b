"""The gauges of reconciliations, from what the runs leave behind; the catalogue names them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from outbox.reconciliation.finished_runs import LastRun, OpenFindings
from outbox.telemetry.metrics import Metrics

KINDS: Final = (
    *("missing", "duplicate", "unexpected", "mismatch"),
    *("disordered", "stuck", "latency", "coverage"),
)
VERDICTS: Final = ("clean", "findings", "inconclusive")
SIDES: Final = {"committed": "judged", "records": "records"}
"""What each side of the comparison is called in a run's counts."""
INFO: Final = "info"


def tell_findings(counts: Sequence[OpenFindings], metrics: Metrics) -> None:
    """Set the gauges of open findings; a kind without one is told as 0."""
    findings, discrepancies = metrics["reconcile_findings"], metrics["reconcile_discrepancies"]
    findings.clear()
    for kind in KINDS:
        above_info = (c.findings for c in counts if c.kind == kind and c.severity != INFO)
        discrepancies.labels(kind).set(sum(above_info))
    for count in counts:
        findings.labels(count.kind, count.severity, count.topic).set(count.findings)


def tell_last(last: LastRun, metrics: Metrics) -> None:
    """Set the gauges of the newest run; what an older one had and this one has not is gone."""
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
    for kind in KINDS:
        metrics["reconcile_new_total"].tell(last.ever.get("new", {}).get(kind, 0), kind)
        metrics["reconcile_resolved_total"].tell(last.ever.get("resolved", {}).get(kind, 0), kind)
    metrics["reconcile_dirty_bucket_ratio"].tell(last.dirty_ratio)
    if last.coverage is not None:
        metrics["reconcile_coverage_ratio"].set(last.coverage)
    metrics["reconcile_inconclusive_runs"].set(last.inconclusive)
    metrics["reconcile_cut_lag_seconds"].set(last.cut_age)
    finished = metrics["reconcile_last_success_timestamp_seconds"]
    finished.set(last.finished_at.timestamp())
