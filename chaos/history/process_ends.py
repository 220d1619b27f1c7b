"""The reasons for which programs of a run ended, and which of them are kills."""

from __future__ import annotations

from typing import Final

ENDED: Final = "ended with"
"""begins the reason of a program that ended by itself: nobody asked it to, whatever its code"""
STOPPED: Final = "stopped"
"""a program that ended in order when the harness asked it to"""
IDLE: Final = "idle"
"""the kill of a program that had done nothing since the last one"""
TOO_SLOW: Final = "too slow to stop"


def is_kill(end: str) -> bool:
    """Return whether an end, ``role:reason``, is a kill that met a working program."""
    reason = end.partition(":")[2]
    return not reason.startswith(ENDED) and reason not in (STOPPED, IDLE, TOO_SLOW)
