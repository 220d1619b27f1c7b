"""Turns SIGINT and SIGTERM into one exception."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class StopRequested(BaseException):
    """A request to stop this process; not an error, so no `except Exception` catches it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.signal = signal.Signals(number)


@contextmanager
def signals_as_exceptions() -> Iterator[None]:
    """Within the block SIGINT and SIGTERM raise StopRequested."""
    before = {number: signal.signal(number, _raise) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _raise(number: int, _frame: FrameType | None) -> None:
    raise StopRequested(number)
