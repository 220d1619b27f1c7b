"""Work is counted without the waits between its steps."""

from __future__ import annotations

import asyncio

import pytest

from api.ingest.bodies import work_steps
from api.ingest.bodies.work_steps import WorkSteps


async def test_waits_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("time.perf_counter", lambda: now)
    steps = WorkSteps()
    now += 2
    steps.stop()
    now += 5
    steps.go_on()
    now += 3
    assert steps.spent_seconds == 5


async def test_a_rest_is_as_long_as_the_step_before(monkeypatch: pytest.MonkeyPatch) -> None:
    now, rests = 100.0, list[float]()

    async def rest(seconds: float) -> None:
        nonlocal now
        rests.append(seconds)
        now += 7

    monkeypatch.setattr("time.perf_counter", lambda: now)
    monkeypatch.setattr(asyncio, "sleep", rest)
    steps = WorkSteps()
    await steps.rest_if_due()
    now += work_steps.STEP_SECONDS / 2
    await steps.rest_if_due()
    assert rests == []
    now += 0.25
    await steps.rest_if_due()
    assert rests == [pytest.approx(0.25, abs=0.01)]
    assert steps.spent_seconds == pytest.approx(0.25, abs=0.01)
