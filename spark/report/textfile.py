"""The metrics of reconciliations as a file for the textfile collector of a node exporter."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from prometheus_client import write_to_textfile
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from outbox.telemetry.metrics import NAMESPACE, Metrics

METRIC_PREFIX: Final = f"{NAMESPACE}_reconcile_"


class ReconciliationCollector(Collector):
    """The metrics of reconciliations in the catalogue."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        """Return the metrics with their samples."""
        return (
            each for each in self._metrics.registry.collect() if each.name.startswith(METRIC_PREFIX)
        )


def write_textfile(path: Path, metrics: Metrics) -> None:
    """Replace the file atomically, so that no reader sees half of it. Raises OSError."""
    write_to_textfile(str(path), ReconciliationCollector(metrics))
