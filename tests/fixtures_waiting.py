"""Waiting for a condition, with a bound."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")
_NEVER = threading.Event()


def wait_for(look: Callable[[], Found], seconds: float = 60, every: float = 0.05) -> Found:
    """Return the first truthy result of ``look``; fail when none comes in time."""
    deadline = time.monotonic() + seconds
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < deadline, f"waited {seconds} s for a condition in vain"
        _NEVER.wait(every)
