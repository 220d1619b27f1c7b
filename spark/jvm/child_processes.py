"""Ends the JVM of a start that was interrupted: PySpark does not keep its process."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def no_child_left() -> Iterator[None]:
    """Kill the processes that were started in the block, with their children, if it fails."""
    before = _children(os.getpid())
    try:
        yield
    except BaseException:
        for child in _children(os.getpid()) - before:
            _kill(child)
            with suppress(ChildProcessError):
                os.waitpid(child, 0)
        raise


def _kill(process: int) -> None:
    """Stop a process before its children are listed, so that it starts no other; kill them all."""
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGSTOP)
        for child in _children(process):
            _kill(child)
        os.kill(process, signal.SIGKILL)


def _children(process: int) -> set[int]:
    """Return the children of a process; none on a system without /proc."""
    return {child for child, parent in _parents() if parent == process}


def _parents() -> Iterator[tuple[int, int]]:
    """Yield each process with its parent; its own name, in parentheses, may hold anything."""
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended meanwhile
            facts = file.read_text(errors="replace").rpartition(")")[2].split()
            yield int(file.parent.name), int(facts[1])
