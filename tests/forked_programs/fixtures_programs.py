"""The words that run a program as a fork: where a test looks at what it does, not at its start.

The same process serves all tests of a worker. Each program is started by an interpreter of its own
too: ``outbox dev`` starts the API and the checker, and tests/e2e/command the commands.
"""

from __future__ import annotations

import atexit
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Final

from tests.fixtures_paths import PROJECT

LAUNCHER: Final = Path(__file__).with_name("fixtures_launcher.py")
ENTRIES: Final = {
    "outbox": "cli.__main__:main",
    "outbox-api": "api.__main__:main",
    "outbox-checker": "checker.__main__:main",
    "outbox-reconcile": "cli.__main__:reconcile",
}


def forked(name: str, entry: str = "") -> list[str]:
    """Return the first words of a command: those of one of our programs, or of another entry."""
    program = entry or ENTRIES[name]
    return [sys.executable, "-I", "-S", str(LAUNCHER), _address(), program, name]


@cache
def _address() -> str:
    """Start the zygote; return where it listens. It ends with this process."""
    folder = tempfile.TemporaryDirectory(prefix="outbox-zygote-")
    address = f"{folder.name}/socket"
    zygote = subprocess.Popen(
        [sys.executable, "-m", "tests.forked_programs.fixtures_zygote", address],
        cwd=PROJECT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert zygote.stdout is not None
    assert zygote.stdout.readline() == b"ready\n"

    @atexit.register
    def end() -> None:
        zygote.kill()
        zygote.communicate()
        folder.cleanup()

    return address
