"""Waiting for something, with a bound and a name for what did not come."""

from collections.abc import Callable
from threading import Event
from time import monotonic

POLL_SECONDS = 0.1


class DidNotHappen(Exception):
    """What the demo waited for did not come in time."""


def wait_until(what: str, happened: Callable[[], bool], seconds: float) -> None:
    """Poll until ``happened()``; raise ``DidNotHappen`` after ``seconds``."""
    deadline, pause = monotonic() + seconds, Event()
    while not happened():
        if monotonic() > deadline:
            raise DidNotHappen(f"waited {seconds:.0f} s in vain: {what}")
        pause.wait(POLL_SECONDS)
