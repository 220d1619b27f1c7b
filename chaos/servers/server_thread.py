"""One thread that lives as long as the run: a server dies with the thread that starts it."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

Result = TypeVar("Result")


class ServerThread:
    """Runs the functions of other threads, one after the other."""

    def __init__(self) -> None:
        """Start the thread."""
        self._asked: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = (
            queue.SimpleQueue()
        )
        self._thread = threading.Thread(target=self._work, name="servers", daemon=True)
        self._thread.start()

    def do(self, act: Callable[[], Result]) -> Result:
        """Run a function in this thread; return its result or raise its exception.

        The function must not call ``do`` itself, and it should not wait for long.
        """
        done: Future[Result] = Future()
        self._asked.put((done, act))
        return done.result()

    def close(self) -> None:
        """End the thread; servers started here die with it."""
        self._asked.put(None)
        self._thread.join(5.0)

    def _work(self) -> None:
        while (asked := self._asked.get()) is not None:
            done, act = asked
            try:
                done.set_result(act())
            except BaseException as error:
                done.set_exception(error)
