"""Writes the history of a run: one JSON line per event, one file per process, safe from SIGKILL.

A line is written at once (``os.write``, no buffer) and made durable once per second. A line that a
kill interrupts has no newline; the next life of the process begins on a new line.
"""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from time import monotonic
from typing import Any, Final

SYNC_SECONDS: Final = 1.0
LIFE: Final = 100_000_000
"""The number range of one life of a process; the next life uses the next range."""


class HistoryWriter:
    """Appends the events of one process; threads may share it."""

    def __init__(self, run: Path, process: str, life: int = 0) -> None:
        """Open ``history/<process>.jsonl`` below the run's folder."""
        folder = run / "history"
        folder.mkdir(exist_ok=True)
        self._process, self._number = process, life * LIFE
        self._file = os.open(folder / f"{process}.jsonl", os.O_RDWR | os.O_CREAT | os.O_APPEND)
        self._lock = threading.Lock()
        self._synced = monotonic()
        self._end_torn_line()

    def write(self, f: str, e: str, number: int | None = None, **fields: Any) -> int:
        """Write an event; return its operation's number (a new one without ``number``)."""
        with self._lock:
            if number is None:
                self._number += 1
                number = self._number
            now = monotonic()
            event = {"t": round(now, 6), "p": self._process, "n": number, "f": f, "e": e, **fields}
            os.write(self._file, json.dumps(event, separators=(",", ":")).encode() + b"\n")
            if now - self._synced > SYNC_SECONDS:
                os.fdatasync(self._file)
                self._synced = now
            return number

    def close(self) -> None:
        """Make everything durable and close the file."""
        os.fsync(self._file)
        os.close(self._file)

    def _end_torn_line(self) -> None:
        size = os.fstat(self._file).st_size
        if size and os.pread(self._file, 1, size - 1) != b"\n":
            os.write(self._file, b"\n")
