"""Blocking name look-ups, each on a thread of its own; nobody waits for the look-up of another.

A look-up belongs to whoever asks for the name, such as a producer group. All who ask for the same
name at once share it. A thread cannot be stopped: when its callers have given up, it runs on until
the name server answers or the system gives up. So an asker has only a few of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from contextlib import suppress
from threading import Thread
from typing import Any, Final

NAMES_PER_ASKER: Final = 4
"""A group has one name; it has more only while look-ups of its former names still run."""

Result = tuple[Any, str | None]
"""What a look-up returned, or the text of its error."""


class LookUps:
    """The look-ups that run now. The threads are daemons, so they do not delay the end."""

    def __init__(self) -> None:
        self._running: dict[Hashable, dict[Hashable, asyncio.Future[Result]]] = {}

    async def run(self, asker: Hashable, name: Hashable, look_up: Callable[[], Any]) -> Any:
        """Return the result of a look-up, or of the one that already runs for this name.

        Raises OSError when the look-up does, and when too many others of the asker still run.
        """
        shared = self._running.get(asker, {}).get(name) or self._start(asker, name, look_up)
        result, error = await asyncio.shield(shared)
        if error is not None:
            raise OSError(error)
        return result

    def _start(
        self, asker: Hashable, name: Hashable, look_up: Callable[[], Any]
    ) -> asyncio.Future[Result]:
        if len(self._running.get(asker, {})) >= NAMES_PER_ASKER:
            raise OSError("too many look-ups of other names still run")
        shared: asyncio.Future[Result] = asyncio.get_running_loop().create_future()

        def work() -> None:
            result = _result(look_up)
            with suppress(RuntimeError):  # the loop is closed
                shared.get_loop().call_soon_threadsafe(self._deliver, asker, name, result)

        Thread(target=work, daemon=True).start()
        self._running.setdefault(asker, {})[name] = shared
        return shared

    def _deliver(self, asker: Hashable, name: Hashable, result: Result) -> None:
        names = self._running[asker]
        names.pop(name).set_result(result)
        if not names:
            del self._running[asker]


def _result(look_up: Callable[[], Any]) -> Result:
    try:
        return look_up(), None
    except (OSError, UnicodeError) as error:
        return None, str(error)
