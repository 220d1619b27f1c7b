"""Where our own programs are: scripts beside this interpreter."""

import sys
from pathlib import Path

from cli.exit_codes import CommandFailed


def script(name: str) -> str:
    """Return the path of an installed console script, e.g. `outbox-api`; raises CommandFailed."""
    path = Path(sys.executable).with_name(name)
    if not path.is_file():
        raise CommandFailed(f"{name} is not installed beside {sys.executable}: run `make setup`")
    return str(path)
