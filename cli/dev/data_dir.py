"""The folder of one `outbox dev`: its lock, its secrets, its ports, the servers' data.

The kernel holds the lock (flock), so the lock ends with its process in every case.
"""

import base64
import fcntl
import json
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

from cli.invocation.exit_codes import CommandFailed, ExitCode
from devservers.loopback import free_ports, is_free
from devservers.unprivileged import unprivileged_user

LOCK = "lock"
OURS = ("postgres", "kafka", "ports.json", "dev.json", "dev.json.new")
PORT_NAMES = ("api", "postgres", "kafka", "kafka_controller", "checker_metrics")


class DataDir:
    """A locked data directory."""

    def __init__(self, path: Path, lock: IO[str]) -> None:
        """Take an open lock; call `open_data_dir` instead."""
        self.path = path
        self._lock = lock

    @property
    def postgres(self) -> Path:
        """Folder for PostgreSQL."""
        return self.path / "postgres"

    @property
    def kafka(self) -> Path:
        """Folder for Kafka."""
        return self.path / "kafka"

    def log(self, name: str) -> Path:
        """Return the log file of a program."""
        return self.path / f"{name}.log"

    def ports(self, given: Mapping[str, int]) -> dict[str, int]:
        """Return a port per name: the given one, the last one if still free, or a new one.

        Raises CommandFailed if a given one is taken, or given twice.
        """
        ports = {name: port for name, port in given.items() if port}
        _refuse_unusable(list(ports.values()))
        fresh = iter(free_ports(2 * len(PORT_NAMES)))
        for name, port in self._kept_ports().items():
            if name not in ports and port not in ports.values() and _usable(port):
                ports[name] = port
        for name in PORT_NAMES:
            while name not in ports:
                port = next(fresh)
                if port not in ports.values():
                    ports[name] = port
        _write_private(self.path / "ports.json", json.dumps(ports))
        return ports

    def secret(self, name: str, make: Callable[[], str] | None = None) -> str:
        """Return the secret stored under `name`; the first call creates it.

        Without `make` it is 32 random bytes in base64.
        """
        file = self.path / f"{name}.secret"
        if not file.exists():
            _write_private(file, (make or _random)())
        return file.read_text()

    def erase(self) -> None:
        """Delete everything except the lock. Raises CommandFailed, and deletes nothing, if the
        folder has something else in it: then it may be the user's own folder.
        """
        entries = [each for each in self.path.iterdir() if each.name != LOCK]
        foreign = sorted(each.name for each in entries if not _is_ours(each.name))
        if foreign:
            line = f"{self.path} has something else in it ({foreign[0]}): --fresh deletes nothing"
            raise CommandFailed(line, ExitCode.USAGE)
        for entry in entries:
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()

    def close(self) -> None:
        """Release the lock."""
        self._lock.close()

    def _kept_ports(self) -> dict[str, int]:
        try:
            found = json.loads((self.path / "ports.json").read_text())
            return {name: int(found[name]) for name in PORT_NAMES if name in found}
        except (OSError, ValueError, TypeError):
            return {}


def open_data_dir(path: Path) -> DataDir:
    """Create the folder if necessary and lock it.

    Raises CommandFailed: with CONFLICT, naming the holder's pid, if another `outbox dev` has it;
    with USAGE if it cannot be used, or if others can write there, because servers are started from
    what it holds.
    """
    path = path.resolve()
    try:
        # As root: PostgreSQL's unprivileged user must be able to enter the folder.
        path.mkdir(mode=0o711 if unprivileged_user() else 0o700, parents=True, exist_ok=True)
        _refuse_foreign(path)
        lock = (path / LOCK).open("a+")
    except OSError as error:
        raise CommandFailed(f"cannot use {path}: {error.strerror}", ExitCode.USAGE) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        holder = lock.read().strip() or "unknown"
        lock.close()
        line = f"{path} is in use by another `outbox dev`, process {holder}"
        raise CommandFailed(line, ExitCode.CONFLICT) from None
    lock.truncate(0)
    lock.write(str(os.getpid()))
    lock.flush()
    return DataDir(path, lock)


def _is_ours(name: str) -> bool:
    """Return whether `outbox dev` makes a file or folder of this name."""
    return name in OURS or name.endswith((".log", ".secret"))


def _refuse_foreign(path: Path) -> None:
    found = path.stat()
    if found.st_uid != os.geteuid():
        raise CommandFailed(f"{path} belongs to another user", ExitCode.USAGE)
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise CommandFailed(f"others can write {path}: chmod go-w it", ExitCode.USAGE)


def _refuse_unusable(given: list[int]) -> None:
    for port in given:
        if given.count(port) > 1:
            raise CommandFailed(f"port {port} is given twice", ExitCode.USAGE)
        if not is_free(port):
            line = f"port {port} on 127.0.0.1 is in use by another process"
            raise CommandFailed(line, ExitCode.CONFLICT)


def _usable(port: int) -> bool:
    return 0 < port < 65_536 and is_free(port)


def _random() -> str:
    return base64.b64encode(secrets.token_bytes(32)).decode()


def _write_private(file: Path, text: str) -> None:
    file.touch(mode=0o600)
    file.chmod(0o600)
    file.write_text(text)
