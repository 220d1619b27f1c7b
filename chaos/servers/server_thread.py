"""One thread that lives as long as the run: servers die with the thread that started them."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

Result = TypeVar("Result")


class ServerThread:
    """Does, one after the other, what other threads ask for."""

    def __init__(self) -> None:
        """Start the thread."""
        self._asked: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = (
            queue.SimpleQueue()
        )
        self._thread = threading.Thread(target=self._work, name="keeper", daemon=True)
        self._thread.start()

    def do(self, act: Callable[[], Result]) -> Result:
        """Have something done and return what it returned, or raise what it raised.

        It must not ask the keeper itself, and it should not wait for long.
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
