"""Ctrl-C: one line and exit code 130, also while a program starts or ends.

While the command runs, an interrupt is a KeyboardInterrupt, so that it can clean up. Before and
after that there is nothing to clean up, and the process ends at once.
"""

import os
import signal
import sys
from contextlib import suppress
from types import FrameType
from typing import NoReturn

from cli.invocation.exit_codes import ExitCode


def end_at_interrupts() -> None:
    """From now on an interrupt ends the process; one that is ignored stays ignored."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _end)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def raise_interrupts() -> None:
    """From now on an interrupt is a KeyboardInterrupt, if it would have ended the process."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(_number: int, _frame: FrameType | None) -> NoReturn:
    with suppress(OSError):
        os.write(2, f"{_program()}: interrupted\n".encode())
    os._exit(ExitCode.INTERRUPTED)


def _program() -> str:
    """Return the name of the program; `python -m` shows a path."""
    name = os.path.basename(sys.argv[0])  # noqa: PTH119 - pathlib is imported later
    return "outbox" if name == "__main__.py" else name
