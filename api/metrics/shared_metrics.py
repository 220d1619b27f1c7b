"""One metrics page for all workers of a service; any worker can render it.

Counters, histograms and the pool gauges are in files that the workers share (prometheus_client's
multiprocess mode). The other gauges are read from the tables by the worker that renders the page.
A file would keep the values that another worker once read, also of deleted groups.
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
from outbox.telemetry.metrics import OVER_WORKERS

DIRECTORY: Final = "PROMETHEUS_MULTIPROC_DIR"
"""prometheus_client reads it at import, so it is set before the workers start."""
SHARED: Final = ("counter_*.db", "histogram_*.db", f"gauge_{OVER_WORKERS}_*.db")

_library: Any = multiprocess
"""Its functions have no type annotations."""


@contextmanager
def shared_directory() -> Iterator[None]:
    """Give the workers of the block an empty directory. Raises ConfigurationError."""
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
    """The supervised workers; the gauges of a dead worker are removed."""

    _seen: frozenset[int | None] = frozenset()

    def keep_subprocess_alive(self) -> None:
        """Replace dead workers; called every half second."""
        before = self._seen | self._pids()
        super().keep_subprocess_alive()
        self._seen = self._pids()
        for pid in before - self._seen:
            _library.mark_process_dead(pid)

    def _pids(self) -> frozenset[int | None]:
        return frozenset(process.pid for process in self.processes)


def page_registry(process: CollectorRegistry) -> CollectorRegistry:
    """Return the registry of ``/metrics``: of this process, or of all workers."""
    directory = process_environment().get(DIRECTORY)
    if directory is None:
        return process
    warnings.filterwarnings("ignore", message="Clearing labels", category=UserWarning)
    merged = CollectorRegistry()
    merged.register(_AllWorkers(Path(directory), process))
    return merged


class _AllWorkers(Collector):
    """The metrics of the shared files, and the other gauges from this process."""

    def __init__(self, directory: Path, process: CollectorRegistry) -> None:
        self._directory = directory
        self._process = process

    def collect(self) -> Iterable[Metric]:
        """Yield the merged metrics; for the registry."""
        files = [str(path) for pattern in SHARED for path in self._directory.glob(pattern)]
        merged = {metric.name: metric for metric in _library.MultiProcessCollector.merge(files)}
        yield from merged.values()
        for metric in self._process.collect():
            if metric.type == "gauge" and metric.name not in merged:
                yield metric
