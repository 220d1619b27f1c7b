"""One page of metrics for all workers of a service, whichever of them is asked.

Counters, histograms and the gauges of the pools lie in files that the workers share
(prometheus_client's multiprocess mode). The other gauges are read from the tables by the worker
that is asked: a file would go on telling what another worker once read, groups that are gone
among it.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from prometheus_client import CollectorRegistry, Metric, multiprocess
from prometheus_client.registry import Collector
from uvicorn.supervisors import Multiprocess

from outbox.errors import ConfigurationError
from outbox.settings.environment import process_environment
from outbox.telemetry.metrics import CATALOGUE, NAMESPACE, OVER_WORKERS

DIRECTORY: Final = "PROMETHEUS_MULTIPROC_DIR"
"""What prometheus_client reads as it is imported, so it is set before the workers start."""
TOLD: Final = {f"{NAMESPACE}_{each.name.removesuffix('_total')}" for each in CATALOGUE if each.told}
"""Metrics that any worker reads from the tables, by the names of their families."""
SHARED: Final = ("counter_*.db", "histogram_*.db", f"gauge_{OVER_WORKERS}_*.db")

_library: Any = multiprocess
"""Its functions carry no types."""


@contextmanager
def shared_directory() -> Iterator[None]:
    """Give the workers started in the block a fresh directory. Raises ConfigurationError."""
    try:
        directory = TemporaryDirectory(prefix="outbox-metrics-", ignore_cleanup_errors=True)
    except OSError as error:
        raise ConfigurationError(
            f"OUTBOX_HTTP_WORKERS above 1 needs a directory for temporary files: {error}"
        ) from None
    with directory as path:
        os.environ[DIRECTORY] = path  # noqa: TID251  the library looks for it there
        yield


class Workers(Multiprocess):
    """The supervised workers; of one that has died, what it alone told is forgotten."""

    _seen: frozenset[int | None] = frozenset()

    def keep_subprocess_alive(self) -> None:
        """Replace workers that have died; called every half second."""
        before = self._seen | self._pids()
        super().keep_subprocess_alive()
        self._seen = self._pids()
        for pid in before - self._seen:
            _library.mark_process_dead(pid)

    def _pids(self) -> frozenset[int | None]:
        return frozenset(process.pid for process in self.processes)


def page_registry(own: CollectorRegistry) -> CollectorRegistry:
    """Return what ``/metrics`` shows: this process's registry, or that of all workers."""
    directory = process_environment().get(DIRECTORY)
    if directory is None:
        return own
    warnings.filterwarnings("ignore", message="Clearing labels", category=UserWarning)
    everybody = CollectorRegistry()
    everybody.register(_AllWorkers(Path(directory), own))
    return everybody


class _AllWorkers(Collector):
    """Everything from the shared files, the rest of the gauges from this process."""

    def __init__(self, directory: Path, own: CollectorRegistry) -> None:
        self._directory = directory
        self._own = own

    def collect(self) -> Iterable[Metric]:
        """Yield the merged metrics; for the registry."""
        files = [str(path) for pattern in SHARED for path in self._directory.glob(pattern)]
        merged = {metric.name: metric for metric in _library.MultiProcessCollector.merge(files)}
        yield from merged.values()
        for metric in self._own.collect():
            if (metric.type == "gauge" or metric.name in TOLD) and metric.name not in merged:
                yield metric
