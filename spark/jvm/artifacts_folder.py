"""Spark 4.0.0 makes a folder `artifacts` where the process was started and leaves it empty."""

from __future__ import annotations

import atexit
import threading
from contextlib import suppress
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Final

from py4j.clientserver import (  # type: ignore[import-untyped]
    SHUTDOWN_FINALIZER_WORKER,
    FinalizerWorker,
)
from pyspark import SparkContext

NAME: Final = "artifacts"
JVM_END_SECONDS: Final = 10


def remove_at_exit() -> None:
    """Remove the folder at the end of the process, unless it is there before Spark starts.

    The JVM empties it only when it ends itself, so its end is waited for.
    """
    folder = Path(NAME).absolute()
    if not folder.exists():
        atexit.register(_remove, folder)


def _remove(folder: Path) -> None:
    process = getattr(SparkContext._gateway, "proc", None)
    if process is not None:
        _end_finalizers()
        process.stdin.close()
        with suppress(TimeoutExpired):
            process.wait(JVM_END_SECONDS)
    with suppress(OSError):  # not made, or somebody else's: only an empty folder is removed
        folder.rmdir()


def _end_finalizers() -> None:
    """End Py4J's thread that names released objects to the JVM, before the JVM ends.

    A command under way would fail, and Py4J logs that with a traceback.
    """
    for thread in threading.enumerate():
        if isinstance(thread, FinalizerWorker):
            thread.deque.append(SHUTDOWN_FINALIZER_WORKER)
            thread.join(JVM_END_SECONDS)
