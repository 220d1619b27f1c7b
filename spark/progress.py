"""Writes one line per stage to stderr: rows, rate and duration. A long one shows that it runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Final, TextIO

from outbox.clock import Clock

SILENT_SECONDS: Final = 5.0
"""A stage that lasts longer shows that it still runs, each time so many seconds have passed."""


@dataclass(slots=True, kw_only=True)
class Stage:
    """A stage under way; the caller sets ``rows`` to the number of rows that it handled."""

    rows: int | None = None


@dataclass(slots=True, kw_only=True)
class Progress:
    """Reports the end of each stage and keeps its duration in seconds."""

    stream: TextIO
    clock: Clock
    timings: dict[str, float] = field(default_factory=dict)
    silent_seconds: float = SILENT_SECONDS

    def note(self, line: str) -> None:
        """Write one line."""
        self.stream.write(f"{line}\n")
        self.stream.flush()

    @contextmanager
    def stage(self, name: str) -> Iterator[Stage]:
        """Time the block and report it if it ends without an error."""
        stage = Stage()
        started = self.clock.monotonic()
        with self._signs_of_life(name, started):
            yield stage
        seconds = self.clock.monotonic() - started
        self.timings[name] = round(seconds, 3)
        self.stream.write(f"{name:<28}{_amount(stage.rows, seconds):>34}{seconds:>8.1f} s\n")
        self.stream.flush()

    @contextmanager
    def _signs_of_life(self, name: str, started: float) -> Iterator[None]:
        """Write a line now and then while the block runs."""
        ended = Event()

        def write() -> None:
            while not ended.wait(self.silent_seconds):
                seconds = self.clock.monotonic() - started
                self.note(f"{name:<28}{'still running':>34}{seconds:>8.1f} s")

        thread = Thread(target=write, name=f"progress of {name}", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


def _amount(rows: int | None, seconds: float) -> str:
    if rows is None:
        return ""
    rate = f"{rows / seconds:,.0f}/s" if seconds > 0 and rows else ""
    return f"{rows:,} {rate:>12}".replace(",", " ")
