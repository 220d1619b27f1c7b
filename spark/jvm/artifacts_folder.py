"""Spark 4.0.0 makes a folder `artifacts` where the process was started and leaves it empty."""

from __future__ import annotations

import atexit
from contextlib import suppress
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Final

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
        process.stdin.close()
        with suppress(TimeoutExpired):
            process.wait(JVM_END_SECONDS)
    with suppress(OSError):  # not made, or somebody else's: only an empty folder is removed
        folder.rmdir()
