"""Turns SIGINT and SIGTERM into one exception and SIGCHLD into a wake-up."""

import select
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType


class StopRequested(BaseException):
    """A request to stop this process; not an error, so no `except Exception` catches it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.signal = signal.Signals(number)


class Wakeup:
    """A wait that any signal ends."""

    def __init__(self, reader: socket.socket) -> None:
        """Wait on a socket; created by `signals_as_exceptions`."""
        self._reader = reader

    def wait(self, seconds: float) -> None:
        """Return after `seconds`, or as soon as a child has ended."""
        select.select([self._reader], [], [], seconds)
        with suppress(BlockingIOError):
            while self._reader.recv(4096):
                pass


@contextmanager
def signals_as_exceptions() -> Iterator[Wakeup]:
    """Within the block SIGINT and SIGTERM raise StopRequested, and SIGCHLD ends a wait."""
    reader, writer = socket.socketpair()
    reader.setblocking(False)
    writer.setblocking(False)
    before = {
        signal.SIGINT: signal.signal(signal.SIGINT, _raise),
        signal.SIGTERM: signal.signal(signal.SIGTERM, _raise),
        signal.SIGCHLD: signal.signal(signal.SIGCHLD, lambda *_: None),
    }
    old_writer = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    try:
        yield Wakeup(reader)
    finally:
        signal.set_wakeup_fd(old_writer)
        for number, handler in before.items():
            signal.signal(number, handler)
        reader.close()
        writer.close()


def _raise(number: int, _frame: FrameType | None) -> None:
    raise StopRequested(number)
