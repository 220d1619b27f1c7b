"""`dev.json`: the addresses of a running `outbox dev`.

The file exists only while the processes run and after `/readyz` has returned 200. It is written
atomically, with mode 0600 because the database URL holds a password.
"""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

NAME = "dev.json"
DEFAULT_DATA_DIR = Path(".outbox-dev")


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
    """Return the state of a running `outbox dev`; None if none runs or the file is stale."""
    try:
        state = DevState(**json.loads((data_dir / NAME).read_text()))
        os.kill(state.pids["api"], 0)
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return state
