"""A long stage shows that it still runs; a short one writes its one line."""

from __future__ import annotations

from io import StringIO
from threading import Event

import pytest

from outbox.clock import SystemClock
from spark.progress import Progress
from tests.fixtures_waiting import wait_for


class Lines(StringIO):
    """A stream that remembers the number of its lines."""

    def lines(self) -> list[str]:
        """Return what was written."""
        return self.getvalue().splitlines()


def progress(stream: Lines, silent_seconds: float) -> Progress:
    return Progress(stream=stream, clock=SystemClock(), silent_seconds=silent_seconds)


def test_a_long_stage_shows_again_and_again_that_it_still_runs() -> None:
    stream = Lines()
    with progress(stream, 0.01).stage("compare"):
        wait_for(lambda: len(stream.lines()) >= 2)
    *signs, last = stream.lines()
    assert all(line.startswith("compare ") and "still running" in line for line in signs)
    assert last.startswith("compare ")
    assert "still running" not in last


def test_a_stage_that_ends_in_time_writes_one_line() -> None:
    stream = Lines()
    with progress(stream, 3600).stage("order") as stage:
        stage.rows = 3
    (line,) = stream.lines()
    assert line.split()[:2] == ["order", "3"]


def fail_in_a_stage(stream: Lines) -> None:
    with progress(stream, 0.01).stage("compare"):
        wait_for(lambda: len(stream.lines()) >= 1)
        raise ValueError("broken")


def test_a_stage_that_fails_ends_its_signs() -> None:
    stream = Lines()
    with pytest.raises(ValueError, match="broken"):
        fail_in_a_stage(stream)
    written = stream.lines()
    Event().wait(0.05)
    assert stream.lines() == written
