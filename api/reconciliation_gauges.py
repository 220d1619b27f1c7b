"""The gauges of reconciliations, read from the tables that the runs leave behind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from outbox.operator_ports import ReconciliationRuns
from outbox.reconciliation import LastRun, OpenFindings
from outbox.telemetry import Metrics

KINDS: Final = (
    *("missing", "duplicate", "unexpected", "mismatch"),
    *("disordered", "stuck", "latency", "coverage"),
)
VERDICTS: Final = ("clean", "findings", "inconclusive")
SIDES: Final = {"committed": "judged", "records": "records"}
"""What each side of the comparison is called in a run's counts."""
INFO: Final = "info"


async def measure(runs: ReconciliationRuns, metrics: Metrics) -> None:
    """Set the gauges; before the first run only the open findings, none, are told.

    Raises DatabaseUnavailable.
    """
    _tell_findings(await runs.open_findings(), metrics)
    last = await runs.last()
    if last is not None:
        _tell_last(last, metrics)


def _tell_findings(counts: Sequence[OpenFindings], metrics: Metrics) -> None:
    findings, discrepancies = metrics["reconcile_findings"], metrics["reconcile_discrepancies"]
    findings.clear()
    for kind in KINDS:
        above_info = (c.findings for c in counts if c.kind == kind and c.severity != INFO)
        discrepancies.labels(kind).set(sum(above_info))
    for count in counts:
        findings.labels(count.kind, count.severity, count.topic).set(count.findings)


def _tell_last(last: LastRun, metrics: Metrics) -> None:
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
    if last.coverage is not None:
        metrics["reconcile_coverage_ratio"].set(last.coverage)
    metrics["reconcile_inconclusive_runs"].set(last.inconclusive)
    metrics["reconcile_cut_lag_seconds"].set(last.cut_age)
    finished = metrics["reconcile_last_success_timestamp_seconds"]
    finished.set(last.finished_at.timestamp())
