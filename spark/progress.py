"""Writes one line per stage to stderr: rows, rate and duration."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TextIO

from outbox.clock import Clock


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

    def note(self, line: str) -> None:
        """Write one line."""
        self.stream.write(f"{line}\n")
        self.stream.flush()

    @contextmanager
    def stage(self, name: str) -> Iterator[Stage]:
        """Time the block and report it if it ends without an error."""
        stage = Stage()
        started = self.clock.monotonic()
        yield stage
        seconds = self.clock.monotonic() - started
        self.timings[name] = round(seconds, 3)
        self.stream.write(f"{name:<28}{_amount(stage.rows, seconds):>34}{seconds:>8.1f} s\n")
        self.stream.flush()


def _amount(rows: int | None, seconds: float) -> str:
    if rows is None:
        return ""
    rate = f"{rows / seconds:,.0f}/s" if seconds > 0 and rows else ""
    return f"{rows:,} {rate:>12}".replace(",", " ")
