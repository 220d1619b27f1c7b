"""One line a stage on stderr, with how much was read, how long it took and at what rate."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TextIO

from outbox.clock import Clock


@dataclass(slots=True, kw_only=True)
class Stage:
    """A stage under way; ``rows`` is set by whoever knows how many it handled."""

    rows: int | None = None


@dataclass(slots=True, kw_only=True)
class Progress:
    """Tells a stage's end and keeps its duration, in seconds."""

    stream: TextIO
    clock: Clock
    timings: dict[str, float] = field(default_factory=dict)

    def note(self, line: str) -> None:
        """Tell one line."""
        self.stream.write(f"{line}\n")
        self.stream.flush()

    @contextmanager
    def stage(self, name: str) -> Iterator[Stage]:
        """Time the block and tell of it when it ends without an error."""
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
