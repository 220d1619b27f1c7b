"""One step of a set-up: a line when it begins, and a line now and then while it runs.

``python -m deploy.setup_step WHAT COMMAND…`` runs a quiet command as a step. It needs nothing but
the standard library, because it runs before anything is installed.
"""

import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic

SILENT_SECONDS = 8.0
"""A step that lasts longer shows that it still runs, each time this time has passed."""


@contextmanager
def step(what: str) -> Iterator[None]:
    """Report what the block does, and while it runs for how long."""
    began, ended = monotonic(), Event()

    def report() -> None:
        while not ended.wait(SILENT_SECONDS):
            say(f"  {what}: {monotonic() - began:.0f} s")

    say(what)
    reporter = Thread(target=report, name=f"step: {what}", daemon=True)
    reporter.start()
    try:
        yield
    finally:
        ended.set()
        reporter.join()


def say(line: str) -> None:
    """Print a line of progress."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def main(arguments: Sequence[str]) -> int:
    """Run the command; return its exit code."""
    what, *command = arguments
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with step(what):
            return subprocess.call(command)
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
