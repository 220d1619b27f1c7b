"""Reads the gauges of reconciliations from the tables that the runs leave behind."""

from __future__ import annotations

from outbox.reconciliation.gauges import tell_findings, tell_last
from outbox.reconciliation.ports import ReconciliationRuns
from outbox.telemetry.metrics import Metrics


async def measure(runs: ReconciliationRuns, metrics: Metrics) -> None:
    """Set the gauges; before the first run only the open findings, none, are told.

    Raises DatabaseUnavailable.
    """
    tell_findings(await runs.open_findings(), metrics)
    last = await runs.last()
    if last is not None:
        tell_last(last, metrics)
