"""Keeps one round going for each group that has something due; groups do not wait for each other.

A turn is taken for every round, so several checkers share the groups. A group whose round failed
rests for a moment, alone.
"""

from __future__ import annotations

import asyncio
from typing import Final

from checker.checks.check_back import CheckBack, CheckRound
from checker.checks.check_observer import CheckObserver
from checker.maintenance.ports import AdvisoryLocks
from outbox.checks.breaker import BreakerState
from outbox.checks.ports import CheckQueue
from outbox.clock import Clock
from outbox.errors import DatabaseUnavailable
from outbox.telemetry.events import Event, get_logger

POLL_SECONDS: Final = 0.1
REST_SECONDS: Final = 2.0
GRACE_SECONDS: Final = 3.0
"""How long rounds under way may take to settle what they know when the process ends."""
TURN: Final = "check-back"


class GroupScheduler:
    """The check backs of a process: at most one round a group at a time."""

    def __init__(
        self,
        check_back: CheckBack,
        queue: CheckQueue,
        turns: AdvisoryLocks,
        clock: Clock,
        facts: CheckObserver,
    ) -> None:
        self._check_back = check_back
        self._queue = queue
        self._turns = turns
        self._clock = clock
        self._facts = facts
        self._running: dict[int, asyncio.Task[None]] = {}
        self._resting: dict[int, float] = {}
        self._log = get_logger()

    async def step(self) -> float:
        """Start rounds for the groups that are due; return the seconds until the next look."""
        groups = await self._queue.due_groups()
        self._facts.due(groups)
        now = self._clock.monotonic()
        for group in groups:
            number = group.producer_group_id
            rests = self._resting.get(number, now) > now
            waits = rests or group.breaker is BreakerState.OPEN
            if group.overdue_seconds >= 0 and not waits and number not in self._running:
                self._start(number, group.producer_group)
        return POLL_SECONDS

    async def drain(self) -> None:
        """Let rounds under way settle, then end those that do not come to an end."""
        if not self._running:
            return
        _, late = await asyncio.wait(self._running.values(), timeout=GRACE_SECONDS)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    def _start(self, number: int, name: str) -> None:
        task = asyncio.create_task(self._rounds(number, name), name=f"check-back {name}")
        self._running[number] = task
        task.add_done_callback(lambda _: self._running.pop(number))

    async def _rounds(self, number: int, name: str) -> None:
        """Run rounds until nothing more is due in the group or another checker has it."""
        try:
            while (await self._round(number)).more:
                pass
            self._resting.pop(number, None)
        except DatabaseUnavailable:
            self._resting[number] = self._clock.monotonic() + REST_SECONDS
        except Exception as error:
            self._resting[number] = self._clock.monotonic() + REST_SECONDS
            self._log.exception(
                Event.STOPPED, chore="check", producer_group=name, error=type(error).__name__
            )

    async def _round(self, number: int) -> CheckRound:
        async with self._turns.turn(TURN, number) as held:
            return await self._check_back.run_once(number) if held else CheckRound()
