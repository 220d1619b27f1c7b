"""Looks from outside: does an API answer, is something so yet."""

from __future__ import annotations

import threading
import urllib.request
from collections.abc import Callable
from time import monotonic
from typing import Final

LOOK_SECONDS: Final = 0.02


def is_alive(port: int) -> bool:
    """Tell whether the API on this port answers."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/livez", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def comes_true(holds: Callable[[], bool], seconds: float, stop: threading.Event) -> bool:
    """Wait until something holds or the run stops, at most so long; tell whether it held."""
    deadline = monotonic() + seconds
    while not holds():
        if monotonic() > deadline or stop.wait(LOOK_SECONDS):
            return False
    return True
