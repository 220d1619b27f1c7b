from __future__ import annotations

import asyncio

import pytest

from checker.periodic_task import PeriodicTask, PeriodicTaskLoop
from outbox.clock import SystemClock
from outbox.errors import DatabaseUnavailable
from outbox.telemetry.metrics import Metrics
from tests.unit.checker.checks.fixtures_fakes import Beats, ManualClock


class Scripted:
    """A task with a list of steps: an error is raised, a number is returned."""

    def __init__(self, *steps: float | Exception) -> None:
        self.steps = list(steps)

    async def step(self) -> float:
        step = self.steps.pop(0)
        if isinstance(step, Exception):
            raise step
        return step


def loop_of(*steps: float | Exception) -> tuple[PeriodicTaskLoop, Beats, ManualClock]:
    beats, clock = Beats(), ManualClock()
    task = PeriodicTask(name="sweep", step=Scripted(*steps).step)
    return PeriodicTaskLoop(task, beats, clock, Metrics(), beat_seconds=5), beats, clock


async def test_a_task_beats_no_more_often_than_asked() -> None:
    loop, beats, clock = loop_of(1, 1, 1)
    for _ in range(3):
        await loop.run_once()
        clock.seconds += 3
    assert beats.beaten == ["sweep", "sweep"]


async def test_a_lost_database_is_retried_with_back_off() -> None:
    lost = DatabaseUnavailable("unavailable")
    loop, beats, _ = loop_of(*[lost] * 8, 0.1, lost)
    pauses = [await loop.run_once() for _ in range(10)]
    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 0.1, 0.1]
    assert beats.beaten == ["sweep"]


async def test_the_loss_and_the_return_are_logged_once(capsys: pytest.CaptureFixture[str]) -> None:
    lost = DatabaseUnavailable("unavailable")
    loop, _, _ = loop_of(lost, lost, 0.1, 0.1)
    for _ in range(4):
        await loop.run_once()
    captured = capsys.readouterr()
    said = captured.out + captured.err
    assert (said.count("dependency_lost"), said.count("dependency_back")) == (1, 1)


async def test_a_bug_in_one_step_does_not_end_the_task() -> None:
    loop, beats, _ = loop_of(ValueError("bug"), 0.5)
    assert [await loop.run_once(), await loop.run_once()] == [0.1, 0.5]
    assert beats.beaten == ["sweep"]


class EndingBeats(Beats):
    """Heartbeats that say when there were four."""

    def __init__(self) -> None:
        super().__init__()
        self.enough = asyncio.Event()

    async def beat(self, task: str) -> None:
        """Keep the beat."""
        await super().beat(task)
        if len(self.beaten) == 4:
            self.enough.set()


async def test_a_task_beats_while_it_rests_after_a_good_step() -> None:
    beats, stop = EndingBeats(), asyncio.Event()
    task = PeriodicTask(name="retire", step=Scripted(60.0).step)
    loop = PeriodicTaskLoop(task, beats, SystemClock(), Metrics(), beat_seconds=0.01)
    running = asyncio.create_task(loop.run(stop))
    async with asyncio.timeout(30):
        await beats.enough.wait()
    stop.set()
    await running
