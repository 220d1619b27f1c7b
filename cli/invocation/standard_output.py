"""Standard output that is closed, has no room, or has no reader any more."""

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from cli.invocation.exit_codes import ExitCode


def replace_closed_streams() -> None:
    """Let a closed stream lead nowhere, before another file gets its descriptor."""
    if sys.stdin is None:
        sys.stdin = Path(os.devnull).open()  # noqa: SIM115 - open until the end
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115


def written_out(code: int) -> int:
    """Write what is still buffered; return the exit code, or ERROR if there is no room for it."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _discard(sys.stdout)
    except OSError as error:
        _discard(sys.stdout)
        if code == ExitCode.OK:  # else the reason is on stderr already
            code = ExitCode.ERROR
            with suppress(OSError):
                print(f"outbox: {error.strerror}", file=sys.stderr)
    try:
        sys.stderr.flush()
    except OSError:
        _discard(sys.stderr)
    return code


def _discard(stream: TextIO) -> None:
    """Let the end of the interpreter find nothing to write, and nowhere to fail."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
