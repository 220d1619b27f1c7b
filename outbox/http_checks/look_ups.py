"""Blocking name look-ups, one at a time for each producer group; no group waits for another's.

All calls of a group that ask for the same name share a look-up. A thread cannot be stopped: when
its callers have given up, it runs on until the name server answers or the system gives up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import Any, NamedTuple


class LookUp(NamedTuple):
    """A running look-up of a name; its result comes with the text of an error, or None."""

    name: str
    found: asyncio.Future[tuple[Any, str | None]]


class LookUps:
    """The look-ups that run now. The threads are daemons, so they do not delay the end."""

    def __init__(self) -> None:
        self._running: dict[int, LookUp] = {}

    async def run(self, group_id: int, name: str, look_up: Callable[[], Any]) -> Any:
        """Return the result of a look-up, or of the one that already runs for this name.

        Raises OSError when the look-up does, and while one of another name of the group runs.
        """
        running = self._running.get(group_id) or self._start(group_id, name, look_up)
        if running.name != name:
            raise OSError("the look-up of another name still runs")
        addresses, error = await asyncio.shield(running.found)
        if error is not None:
            raise OSError(error)
        return addresses

    def _start(self, group_id: int, name: str, look_up: Callable[[], Any]) -> LookUp:
        loop = asyncio.get_running_loop()
        running = self._running[group_id] = LookUp(name, loop.create_future())

        def deliver(result: tuple[Any, str | None]) -> None:
            del self._running[group_id]
            running.found.set_result(result)

        def work() -> None:
            result = _result(look_up)
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(deliver, result)

        Thread(target=work, daemon=True).start()
        return running


def _result(look_up: Callable[[], Any]) -> tuple[Any, str | None]:
    try:
        return look_up(), None
    except (OSError, UnicodeError) as error:
        return None, str(error)
