"""A small file system of its own for PostgreSQL's data, so that it can be filled up (F11).

It is a tmpfs: mounting one needs root. Nothing else of the machine runs out of space.
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
    """A file system of its own cannot be mounted here."""


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[None]:
    """Mount one on a folder for the block; its content is gone afterwards. Raises NoSmallDisk."""
    folder.mkdir(mode=0o711, parents=True, exist_ok=True)
    options = f"size={megabytes}m,mode=0711"
    try:
        _run("mount", "-t", "tmpfs", "-o", options, "outbox-chaos", str(folder))
    except (OSError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", None) or error
        raise NoSmallDisk(f"a disk to fill up needs root and mount: {str(said).strip()}") from error
    try:
        yield
    finally:
        _unmount(folder)


def fill(folder: Path) -> int:
    """Take what is free on a folder's small disk; return how many bytes were taken in all.

    Raises NoSmallDisk if the folder is on a disk that others need.
    """
    if not folder.is_mount():
        raise NoSmallDisk(f"{folder} is no disk of its own: the profile gives PostgreSQL none")
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
    """Give back what was taken."""
    (folder / BALLAST).unlink(missing_ok=True)


def free_bytes(folder: Path) -> int:
    """Return how much is free."""
    facts = os.statvfs(folder)
    return facts.f_bavail * facts.f_frsize


def _grow(ballast: int, size: int) -> None:
    """Take so much more, all or nothing."""
    os.posix_fallocate(ballast, os.fstat(ballast).st_size, size)


def _unmount(folder: Path) -> None:
    """Unmount, in the end also under a process that still has a file open there."""
    for _ in range(UNMOUNT_TRIES):
        with suppress(subprocess.SubprocessError):
            _run("umount", str(folder))
            return
        _NEVER.wait(PAUSE_SECONDS)
    _run("umount", "--lazy", str(folder))


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=MOUNT_SECONDS)
