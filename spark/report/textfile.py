"""The metrics of reconciliations as a file for a node exporter's textfile collector."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from prometheus_client import write_to_textfile
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from outbox.telemetry.metrics import NAMESPACE, Metrics

OURS: Final = f"{NAMESPACE}_reconcile_"


class Reconciled(Collector):
    """Those of the catalogue's metrics that tell of reconciliations."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        """Return the metrics with their samples."""
        return (each for each in self._metrics.registry.collect() if each.name.startswith(OURS))


def write_textfile(path: Path, metrics: Metrics) -> None:
    """Replace the file in one step, so that no reader meets half of it. Raises OSError."""
    write_to_textfile(str(path), Reconciled(metrics))
