"""Sets the reconciliation gauges from the tables that the runs write."""

from __future__ import annotations

from outbox.reconciliation.gauges import set_last_run, set_open_findings
from outbox.reconciliation.ports import ReconciliationRuns
from outbox.telemetry.metrics import Metrics


async def set_gauges(runs: ReconciliationRuns, metrics: Metrics) -> None:
    """Set the gauges; before the first run only the open findings, with zero.

    Raises DatabaseUnavailable.
    """
    set_open_findings(await runs.open_findings(), metrics)
    last = await runs.last()
    if last is not None:
        set_last_run(last, metrics)
