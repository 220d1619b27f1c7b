"""A deadline that moves with every request and rarely costs a timer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

EARLY_SECONDS: Final = 0.001
"""The loop's clock is coarse; a timer may fire this much too early."""


class Deadline:
    """Calls ``expire`` once its time has passed, unless it was moved or stopped before.

    A later deadline keeps the timer of the earlier one, which is set again when it fires.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, expire: Callable[[], None]) -> None:
        self._loop = loop
        self._expire = expire
        self._at: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def start(self, seconds: float) -> None:
        """Expire in so many seconds from now, whatever was set before."""
        at = self._at = self._loop.time() + seconds
        if self._timer is None or self._timer.when() > at:
            self._cancel()
            self._timer = self._loop.call_at(at, self._fire)

    def stop(self) -> None:
        """Never expire, until it is started again."""
        self._at = None

    def release(self) -> None:
        """Never expire, and refer to nothing any more; for a connection that has ended."""
        self.stop()
        self._cancel()
        self._expire = _nothing

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _fire(self) -> None:
        self._timer = None
        if self._at is None:
            return
        if self._at - self._loop.time() > EARLY_SECONDS:
            self._timer = self._loop.call_at(self._at, self._fire)
            return
        self._at = None
        self._expire()


def _nothing() -> None:
    """Do nothing, instead of a connection that has ended."""
