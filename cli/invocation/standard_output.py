"""Standard output that is closed, has no room, or is read by nobody any more."""

import os
import sys
from contextlib import suppress
from pathlib import Path

from cli.invocation.exit_codes import ExitCode


def replace_closed_output() -> None:
    """Let a closed standard output lead nowhere, before another file gets its descriptor."""
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 - open until the end


def written_out(code: int) -> int:
    """Write what is still buffered; return the exit code, or ERROR if there is no room for it."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()
    except OSError as error:
        _discard_output()
        if code != ExitCode.OK:
            return code  # the reason is on stderr already
        print(f"outbox: {error.strerror}", file=sys.stderr)
        return ExitCode.ERROR
    return code


def _discard_output() -> None:
    """Let the end of the interpreter find nothing to write, and nowhere to fail."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
