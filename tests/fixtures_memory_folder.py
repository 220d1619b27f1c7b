"""A folder in memory for the data of servers that all tests of a session share.

Servers flush as they do in earnest, but on a disk that two of them share with everything else each
flush costs a test up to a second: dropping a database alone takes a checkpoint. A SIGKILL takes
nothing from memory; a loss of power is no test's matter.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MEMORY = Path("/dev/shm")
ROOM = 6 << 30
"""Bytes that must be free, in the folder and in the machine's memory."""
PREFIX = "outbox-tests-"


def has_room() -> bool:
    """Tell whether this machine has memory to spare; one without ``/dev/shm`` has none."""
    facts = Path("/proc/meminfo")
    if not (MEMORY.is_dir() and facts.exists()):
        return False
    available = re.search(r"MemAvailable: +(\d+) kB", facts.read_text())
    spare = int(available[1]) << 10 if available else 0
    return min(spare, shutil.disk_usage(MEMORY).free) >= ROOM


@contextmanager
def memory_folder() -> Iterator[Path]:
    """Yield a folder of this process that any user can enter; what a killed one left goes first."""
    for left in MEMORY.glob(f"{PREFIX}*"):
        if not Path("/proc", left.name.removeprefix(PREFIX)).exists():
            shutil.rmtree(left, ignore_errors=True)
    folder = MEMORY / f"{PREFIX}{os.getpid()}"
    folder.mkdir()
    folder.chmod(0o711)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
