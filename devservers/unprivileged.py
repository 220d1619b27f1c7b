"""An unprivileged user for PostgreSQL, which refuses to run as root, and folders for that user.

For an ordinary user nothing changes. For root, a folder below a closed parent (a root-only home,
pytest's private folders) is replaced by a stand-in in the system's temporary space, with a name
derived from the wanted folder. A stand-in of a folder that has been deleted since is removed when
the next one is made.
"""

import hashlib
import os
import pwd
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from devservers.errors import NotReachable

CANDIDATES = ("postgres", "nobody", "daemon")
FALLBACK_PARENT = Path("/var/tmp")
STANDS_FOR = ".stands-for"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAs:
    """A user to run a child as."""

    uid: int
    gid: int

    def take(self, folder: Path) -> None:
        """Create `folder` if necessary, owned by this user and closed to everybody else."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.chown(folder, self.uid, self.gid)
        folder.chmod(0o700)


def unprivileged_user() -> RunAs | None:
    """Return the user to run as: None for an ordinary user; for root a user with a passwd entry.

    Raises NotReachable without one (initdb looks up its user, so a bare number fails).
    """
    if os.geteuid() != 0:
        return None
    for name in CANDIDATES:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        if entry.pw_uid != 0:
            return RunAs(uid=entry.pw_uid, gid=entry.pw_gid)
    raise NotReachable(
        f"PostgreSQL does not run as root, and no user {', '.join(CANDIDATES)} exists here"
    )


def reachable(folder: Path, user: RunAs | None) -> Path:
    """Return `folder`, or a stand-in for it that `user` can enter.

    Raises NotReachable if another user owns a file with the stand-in's name.
    """
    wanted = folder.resolve()
    if user is None or all(
        _can_enter(parent, user) for parent in wanted.parents if parent.exists()
    ):
        return wanted
    return _stand_in(wanted)


def stand_ins_for(folder: Path) -> Iterator[Path]:
    """Yield the stand-ins that exist for anything below `folder`."""
    for note in FALLBACK_PARENT.glob(f"outbox-*/{STANDS_FOR}"):
        if Path(note.read_text().strip()).is_relative_to(folder.resolve()):
            yield note.parent


def remove_abandoned() -> None:
    """Remove our stand-ins whose place has been deleted and that no process uses."""
    for note in FALLBACK_PARENT.glob(f"outbox-*/{STANDS_FOR}"):
        folder = note.parent
        if folder.lstat().st_uid != os.geteuid() or not note.is_file():
            continue
        place = Path(note.read_text().strip()).parent
        if place.is_absolute() and not place.exists() and not _in_use(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _in_use(folder: Path) -> bool:
    """Return whether a process runs a program below the folder, or works there."""
    for process in Path("/proc").glob("[0-9]*"):
        for link in ("exe", "cwd"):
            try:
                if (process / link).readlink().is_relative_to(folder):
                    return True
            except OSError:  # it has ended, or is no ordinary process
                continue
    return False


def _can_enter(folder: Path, user: RunAs) -> bool:
    facts = folder.stat()
    if facts.st_uid == user.uid:
        return bool(facts.st_mode & stat.S_IXUSR)
    if facts.st_gid == user.gid:
        return bool(facts.st_mode & stat.S_IXGRP)
    return bool(facts.st_mode & stat.S_IXOTH)


def _stand_in(wanted: Path) -> Path:
    remove_abandoned()
    wanted.parent.mkdir(parents=True, exist_ok=True)  # while it is there, the stand-in is kept
    name = hashlib.sha256(os.fsencode(wanted)).hexdigest()[:16]
    folder = FALLBACK_PARENT / f"outbox-{name}"
    folder.mkdir(mode=0o711, exist_ok=True)
    facts = folder.lstat()
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.geteuid():
        raise NotReachable(
            f"{folder} belongs to another user:"
            " remove it, or choose a data directory that any user can enter"
        )
    folder.chmod(0o711)
    (folder / STANDS_FOR).write_text(f"{wanted}\n")
    return folder
