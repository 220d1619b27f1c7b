"""Pauses whole process trees, so that what is not measured costs nothing."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable
from contextlib import suppress

from benchmarks.measure.cpu_time import process_tree


def end_in_order() -> None:
    """Let SIGTERM end this program as Ctrl-C does, so that nothing paused is left behind."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


def pause(roots: Iterable[int]) -> None:
    """Stop each tree, parents first: a stopped parent starts no child."""
    for root in roots:
        for pid in process_tree(root):
            _send(pid, signal.SIGSTOP)


def resume(roots: Iterable[int]) -> None:
    """Let each tree go on, children first; what runs is left as it is."""
    for root in roots:
        for pid in reversed(process_tree(root)):
            _send(pid, signal.SIGCONT)


def _send(pid: int, what: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, what)
