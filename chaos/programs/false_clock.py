"""Runs a program under a false clock: libfaketime, preloaded into a fresh interpreter.

With an offset the monotonic clock stays true; with a rate it runs faster, like the wall clock.
"""

from __future__ import annotations

import os
import sys
import threading
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from email.utils import parsedate_to_datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from chaos.programs.children import Child
from chaos.servers.probes import wait_until_true

PACKAGE: Final = "libfaketime"
LIBRARY: Final = "vendor/libfaketime/src/libfaketime.so.1"
WHY: Final = "clock"
NEXT_SECONDS: Final = 10.0


class NoFalseClock(RuntimeError):
    """The library for false clocks is not installed."""


def library() -> Path:
    """Return the path of libfaketime without importing its package. Raises NoFalseClock."""
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise NoFalseClock(f"the Python package {PACKAGE} (requirements/dev.txt) is not installed")
    found = Path(next(iter(spec.submodule_search_locations))) / LIBRARY
    if not found.is_file():
        raise NoFalseClock(f"the Python package {PACKAGE} has no {LIBRARY}")
    return found


def false_clock(clock: str | Path) -> Mapping[str, str]:
    """Return the environment variables for a clock: an offset, or ``x`` and a rate.

    A path names a file with the offset. When the file changes, the clock of the running program
    steps within a second. Raises NoFalseClock.
    """
    rate = isinstance(clock, str) and clock.startswith("x")
    return {
        "LD_PRELOAD": str(library()),
        **_clock_source(f"+0 {clock}" if rate else clock),
        "FAKETIME_DONT_FAKE_MONOTONIC": "0" if rate else "1",
        "FAKETIME_FORCE_MONOTONIC_FIX": "0",
        # The modules' folders, because the working directory is not on the path.
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "PYTHONSAFEPATH": "1",
    }


def _clock_source(clock: str | Path) -> Mapping[str, str]:
    if isinstance(clock, Path):
        return {"FAKETIME_TIMESTAMP_FILE": str(clock), "FAKETIME_CACHE_DURATION": "1"}
    return {"FAKETIME": clock}


@contextmanager
def under_clock(child: Child, clock: str | Path) -> Iterator[None]:
    """Restart a program under a false clock for the block, and under the true one after it."""
    true, false = child.environment, false_clock(clock)
    child.environment = lambda life: {**true(life), **false}
    try:
        _restart(child)
        yield
    finally:
        child.environment = true
        _restart(child)


def _restart(child: Child) -> None:
    """Kill the present life, even one that is about to start."""
    lives = child.lives

    def restarted() -> bool:
        child.kill(WHY)
        return child.held or child.lives > lives

    wait_until_true(restarted, NEXT_SECONDS, threading.Event())


def has_false_clock(pid: int) -> bool:
    """Return whether a process runs under a false clock."""
    try:
        return b"\0FAKETIME" in b"\0" + Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False


def api_time(port: int) -> datetime | None:
    """Return the time of the API on this port, None if it does not answer."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/livez", timeout=2) as answer:
            return parsedate_to_datetime(answer.headers["date"])
    except OSError:
        return None
