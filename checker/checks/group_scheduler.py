"""Runs one round at a time for each group with due halves; groups do not wait for each other.

Every round takes an advisory lock, so several checkers share the groups. After a failed round only
its own group pauses for a moment.
"""

from __future__ import annotations

import asyncio
from typing import Final

from checker.advisory_locks import AdvisoryLocks
from checker.checks.check_back import CheckBack, CheckQueue, CheckRound
from checker.checks.check_observer import CheckObserver
from outbox.checks.breaker import BreakerState
from outbox.clock import Clock
from outbox.errors import ConfigurationError, DatabaseUnavailable
from outbox.telemetry.dependency_log import DependencyLog
from outbox.telemetry.events import Event, get_logger

POLL_SECONDS: Final = 0.1
EMPTY_SECONDS: Final = 0.25
"""The pause while no half waits: each look costs PostgreSQL as much as a small read."""
PAUSE_SECONDS: Final = 2.0
GRACE_SECONDS: Final = 3.0
"""The time that running rounds have to settle their results when the process ends."""
LOCK_KIND: Final = "check-back"


class GroupScheduler:
    """The check-backs of a process: at most one round per group at a time."""

    def __init__(
        self,
        check_back: CheckBack,
        queue: CheckQueue,
        locks: AdvisoryLocks,
        clock: Clock,
        observer: CheckObserver,
    ) -> None:
        self._check_back = check_back
        self._queue = queue
        self._locks = locks
        self._clock = clock
        self._observer = observer
        self._running: dict[int, asyncio.Task[None]] = {}
        self._paused_until: dict[int, float] = {}
        self._unreadable: set[int] = set()
        """Groups whose secret cannot be opened, as the log says already."""
        self._lost: dict[int, DependencyLog] = {}
        """The groups whose rounds PostgreSQL refuses: it may answer the look for them."""
        self._log = get_logger()

    async def step(self) -> float:
        """Start rounds for the groups that are due; return the seconds until the next step."""
        groups = await self._queue.due_groups()
        self._observer.due(groups)
        now = self._clock.monotonic()
        for group in groups:
            number = group.producer_group_id
            waits = group.rests or group.breaker is BreakerState.OPEN
            is_due = group.aged if waits else group.overdue_seconds >= 0
            pauses = self._paused_until.get(number, now) > now
            if is_due and not pauses and number not in self._running:
                self._start(number, group.producer_group)
        return POLL_SECONDS if groups else EMPTY_SECONDS

    async def drain(self) -> None:
        """Let running rounds settle, then cancel those that do not end in time."""
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
            self._paused_until.pop(number, None)
            self._unreadable.discard(number)
            if lost := self._lost.pop(number, None):
                lost.back()
        except ConfigurationError as error:
            self._paused_until[number] = self._clock.monotonic() + PAUSE_SECONDS
            self._note_unreadable(number, name, error)
        except DatabaseUnavailable as error:
            log = DependencyLog("postgres", task="check", producer_group=name)
            self._lost.setdefault(number, log).lost(error)
            self._paused_until[number] = self._clock.monotonic() + PAUSE_SECONDS
        except Exception as error:
            self._paused_until[number] = self._clock.monotonic() + PAUSE_SECONDS
            self._log.exception(
                Event.STEP_FAILED, task="check", producer_group=name, error=type(error).__name__
            )

    def _note_unreadable(self, number: int, name: str, error: ConfigurationError) -> None:
        if number not in self._unreadable:
            self._unreadable.add(number)
            self._log.error(Event.SECRET_UNREADABLE, producer_group=name, error=str(error))

    async def _round(self, number: int) -> CheckRound:
        async with self._locks.try_lock(LOCK_KIND, number) as held:
            return await self._check_back.run_once(number) if held else CheckRound()
