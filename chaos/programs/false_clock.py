"""A program under a clock of its own: libfaketime, preloaded into a fresh interpreter.

The monotonic clock stays true for a jump and runs faster with the wall clock for a rate.
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

from chaos.final_state.probes import comes_true
from chaos.programs.children import Child

PACKAGE: Final = "libfaketime"
LIBRARY: Final = "vendor/libfaketime/src/libfaketime.so.1"
WHY: Final = "clock"
NEXT_SECONDS: Final = 10.0


class NoFalseClock(RuntimeError):
    """The library that makes false clocks is not installed."""


def library() -> Path:
    """Return where libfaketime is, without importing its package. Raises NoFalseClock."""
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise NoFalseClock(f"the Python package {PACKAGE} (requirements/dev.txt) is not installed")
    found = Path(next(iter(spec.submodule_search_locations))) / LIBRARY
    if not found.is_file():
        raise NoFalseClock(f"the Python package {PACKAGE} has no {LIBRARY}")
    return found


def false_clock(clock: str | Path) -> Mapping[str, str]:
    """Return what a program's environment needs for a clock: an offset, or ``x`` and a rate.

    A file tells the offset and may be written anew: the clock of the running program then steps
    within a second. Raises NoFalseClock.
    """
    rate = isinstance(clock, str) and clock.startswith("x")
    return {
        "LD_PRELOAD": str(library()),
        **_told(f"+0 {clock}" if rate else clock),
        "FAKETIME_DONT_FAKE_MONOTONIC": "0" if rate else "1",
        "FAKETIME_FORCE_MONOTONIC_FIX": "0",
        # Not the folder where it was called, but where its modules are.
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "PYTHONSAFEPATH": "1",
    }


def _told(clock: str | Path) -> Mapping[str, str]:
    if isinstance(clock, Path):
        return {"FAKETIME_TIMESTAMP_FILE": str(clock), "FAKETIME_CACHE_DURATION": "1"}
    return {"FAKETIME": clock}


@contextmanager
def under_clock(child: Child, clock: str | Path) -> Iterator[None]:
    """Kill a program; its lives have a false clock in the block, and a true one after it."""
    true, false = child.environment, false_clock(clock)
    child.environment = lambda life: {**true(life), **false}
    try:
        _begin_anew(child)
        yield
    finally:
        child.environment = true
        _begin_anew(child)


def _begin_anew(child: Child) -> None:
    """Kill the present life, also one that is only about to begin."""
    lives = child.lives

    def begun() -> bool:
        child.kill(WHY)
        return child.held or child.lives > lives

    comes_true(begun, NEXT_SECONDS, threading.Event())


def has_false_clock(pid: int) -> bool:
    """Tell whether a process was executed under a false clock."""
    try:
        return b"\0FAKETIME" in b"\0" + Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False


def time_told(port: int) -> datetime | None:
    """Return what time it is for the API on this port, None if it does not answer."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/livez", timeout=2) as answer:
            return parsedate_to_datetime(answer.headers["date"])
    except OSError:
        return None
