"""Polls for an event, with a deadline and a name for the event."""

from collections.abc import Callable
from threading import Event
from time import monotonic

POLL_SECONDS = 0.1


class DeadlineExceeded(Exception):
    """An event of the demo did not happen in time."""


def wait_until(what: str, happened: Callable[[], bool], seconds: float) -> None:
    """Poll until ``happened()``; raise ``DeadlineExceeded`` after ``seconds``."""
    deadline, pause = monotonic() + seconds, Event()
    while not happened():
        if monotonic() > deadline:
            raise DeadlineExceeded(f"not within {seconds:.0f} s: {what}")
        pause.wait(POLL_SECONDS)
