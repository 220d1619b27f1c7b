"""`dev.json`: the addresses of a running `outbox dev`.

The file exists only while the processes run and after `/readyz` has returned 200. It is written
atomically, with mode 0600 because the database URL holds a password. The command line reads it in
whatever folder it is started, so it believes only a file that nobody else can have written.
"""

import json
import os
import re
import stat
from dataclasses import asdict, dataclass
from ipaddress import ip_address
from pathlib import Path

from outbox.errors import ConfigurationError

NAME = "dev.json"
DEFAULT_DATA_DIR = Path(".outbox-dev")
_PLACE = r"(?P<host>[0-9.]+|localhost|\[[0-9a-f:]+\])(:[0-9]+)?"
_API = re.compile(rf"http://{_PLACE}/?")
_DATABASE = re.compile(rf"postgresql://([^/@]*@)?{_PLACE}(/[A-Za-z0-9_-]*)?")
_BROKER = re.compile(_PLACE)


@dataclass(frozen=True, slots=True, kw_only=True)
class DevState:
    """The content of `dev.json`."""

    api_url: str
    kafka_bootstrap_servers: str
    database_url: str
    pids: dict[str, int]
    api_key: str | None
    version: str


def write_state(data_dir: Path, state: DevState) -> None:
    """Replace `dev.json` in one step."""
    scratch = data_dir / f"{NAME}.new"
    scratch.unlink(missing_ok=True)
    scratch.touch(mode=0o600)
    scratch.write_text(json.dumps(asdict(state), indent=2) + "\n")
    scratch.replace(data_dir / NAME)


def remove_state(data_dir: Path) -> None:
    """Delete `dev.json` if it exists."""
    (data_dir / NAME).unlink(missing_ok=True)


def running_state(data_dir: Path = DEFAULT_DATA_DIR) -> DevState | None:
    """Return the state of a running `outbox dev`; None if none runs or the file is stale.

    Raises ConfigurationError for a file that somebody else may have written, or that names another
    machine: nothing in it is used.
    """
    try:
        state = DevState(**json.loads(_own_text(data_dir / NAME)))
        if not _runs(state.pids["api"]):
            return None
        _refuse_other_machines(state, data_dir / NAME)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    return state


def _own_text(file: Path) -> str:
    """Return the text of a file that only this user can write; raises ConfigurationError."""
    descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, encoding="utf-8") as opened:
        found = os.fstat(opened.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
            raise ConfigurationError(f"{file} is not used: it does not belong to you")
        if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise ConfigurationError(f"{file} is not used: others can write it")
        return opened.read()


def _runs(pid: object) -> bool:
    """Return True for a process of this user; 1 and below stand for others or for many."""
    if type(pid) is not int or pid < 2:
        return False
    os.kill(pid, 0)
    return True


def _refuse_other_machines(state: DevState, file: Path) -> None:
    """Accept the plain forms that `outbox dev` writes, which every parser reads alike."""
    brokers = [(_BROKER, each) for each in state.kafka_bootstrap_servers.split(",")]
    for form, address in ((_API, state.api_url), (_DATABASE, state.database_url), *brokers):
        found = form.fullmatch(address)
        if found is None or not _is_loopback(found["host"]):
            raise ConfigurationError(f"{file} is not used: it names another machine")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
