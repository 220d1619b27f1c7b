"""A folder in which `outbox dev` seems to run, and commands that are started there."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from cli.invocation.dev_state import DevState, write_state
from outbox.settings.environment import process_environment

STATE: Final = DevState(
    api_url="http://127.0.0.1:8080",
    kafka_bootstrap_servers="127.0.0.1:9092",
    database_url="postgresql://outbox:secret@127.0.0.1:5432/outbox",
    pids={"api": os.getpid()},
    api_key=None,
    version="0",
)


def write_dev_file(folder: Path, **fields: Any) -> None:
    """Write the file of a running `outbox dev` with these fields."""
    (folder / ".outbox-dev").mkdir()
    write_state(folder / ".outbox-dev", replace(STATE, **fields))


def run_in(
    folder: Path, command: Sequence[str | Path], settings: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder with these settings alone."""
    inherited = process_environment().items()
    clean = {name: text for name, text in inherited if not name.startswith("OUTBOX_")}
    return subprocess.run(
        command,
        cwd=folder,
        env={**clean, **settings},
        capture_output=True,
        text=True,
        check=False,
    )
