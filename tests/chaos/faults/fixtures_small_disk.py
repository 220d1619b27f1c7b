"""A small separate file system for PostgreSQL's data, which can be filled up.

It is a tmpfs, which needs root to mount. Nothing else on the machine runs out of space.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

MEGABYTE = 1 << 20
BALLAST = "ballast"


class NoSmallDisk(Exception):
    """A separate file system cannot be mounted here."""


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[None]:
    """Mount a disk on a folder for the block; its content is lost then. Raises NoSmallDisk."""
    folder.mkdir(mode=0o711, parents=True, exist_ok=True)
    options = f"size={megabytes}m,mode=0711"
    try:
        _run("mount", "-t", "tmpfs", "-o", options, "outbox-test", str(folder))
    except (OSError, subprocess.SubprocessError) as error:
        raise NoSmallDisk("a separate disk needs root and mount") from error
    try:
        yield
    finally:
        _run("umount", "--lazy", str(folder))


def fill(folder: Path) -> None:
    """Fill the free space of a folder's disk."""
    assert folder.is_mount()
    ballast = os.open(folder / BALLAST, os.O_WRONLY | os.O_CREAT, 0o600)
    size = MEGABYTE
    while size >= 1:
        with suppress(OSError):
            os.posix_fallocate(ballast, os.fstat(ballast).st_size, size)
            continue
        size //= 16
    os.close(ballast)


def make_room(folder: Path) -> None:
    """Free the filled space."""
    (folder / BALLAST).unlink()


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=10)
