"""Probes from outside: whether an API answers, and waiting for a condition."""

from __future__ import annotations

import threading
import urllib.request
from collections.abc import Callable
from time import monotonic
from typing import Final

LOOK_SECONDS: Final = 0.02


def is_alive(port: int) -> bool:
    """Return whether the API on this port answers."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/livez", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def wait_until_true(
    holds: Callable[[], bool],
    seconds: float,
    stop: threading.Event,
    look_seconds: float = LOOK_SECONDS,
) -> bool:
    """Wait for a condition, at most ``seconds`` or until the run stops; return the condition."""
    deadline = monotonic() + seconds
    while not holds():
        if monotonic() > deadline or stop.wait(look_seconds):
            return False
    return True
