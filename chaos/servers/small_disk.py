"""A small separate file system for PostgreSQL's data, which can be filled up (F11).

It is a tmpfs, which needs root to mount. Nothing else on the machine runs out of space.
"""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from devservers.errors import EmbeddedError

MEGABYTE: Final = 1 << 20
MOUNT_SECONDS: Final = 10.0
UNMOUNT_TRIES: Final = 20
PAUSE_SECONDS: Final = 0.2
BALLAST: Final = "ballast"
_NEVER: Final = threading.Event()


class NoSmallDisk(EmbeddedError):
    """A separate file system cannot be mounted here."""


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[None]:
    """Mount a disk on a folder for the block; its content is lost then. Raises NoSmallDisk."""
    folder.mkdir(mode=0o711, parents=True, exist_ok=True)
    options = f"size={megabytes}m,mode=0711"
    try:
        _run("mount", "-t", "tmpfs", "-o", options, "outbox-chaos", str(folder))
    except (OSError, subprocess.SubprocessError) as error:
        output = getattr(error, "stderr", None) or error
        raise NoSmallDisk(f"a separate disk needs root and mount: {str(output).strip()}") from error
    try:
        yield
    finally:
        _unmount(folder)


def fill(folder: Path) -> int:
    """Fill the free space of a folder's small disk; return the total of the filled bytes.

    Raises NoSmallDisk if the folder is not a separate disk.
    """
    if not folder.is_mount():
        raise NoSmallDisk(f"{folder} is not a separate disk: the profile gives PostgreSQL none")
    ballast = os.open(folder / BALLAST, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        size = MEGABYTE
        while size >= 1:
            with suppress(OSError):
                _grow(ballast, size)
                continue
            size //= 16
        return os.fstat(ballast).st_size
    finally:
        os.close(ballast)


def make_room(folder: Path) -> None:
    """Free the filled space."""
    (folder / BALLAST).unlink(missing_ok=True)


def free_bytes(folder: Path) -> int:
    """Return the free bytes."""
    facts = os.statvfs(folder)
    return facts.f_bavail * facts.f_frsize


def _grow(ballast: int, size: int) -> None:
    """Fill ``size`` more bytes, all or nothing."""
    os.posix_fallocate(ballast, os.fstat(ballast).st_size, size)


def _unmount(folder: Path) -> None:
    """Unmount; after some tries also while a process still has a file open there."""
    for _ in range(UNMOUNT_TRIES):
        with suppress(subprocess.SubprocessError):
            _run("umount", str(folder))
            return
        _NEVER.wait(PAUSE_SECONDS)
    _run("umount", "--lazy", str(folder))


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=MOUNT_SECONDS)
