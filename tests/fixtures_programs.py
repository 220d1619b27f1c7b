"""The programs of this project, as the console scripts that `make setup` installs."""

from __future__ import annotations

import sys
from pathlib import Path


def program(name: str) -> str:
    """Return the path of one of the console scripts, such as ``outbox-api``."""
    return str(Path(sys.executable).with_name(name))
