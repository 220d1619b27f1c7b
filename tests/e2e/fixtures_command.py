"""The `outbox` command as a user runs it: a process, its output, its exit code."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from outbox.settings.environment import process_environment
from tests.fixtures_programs import program

OUTBOX = program("outbox")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The result of a run of the command."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """Return stdout as JSON."""
        return json.loads(self.out)


def outbox(*arguments: str, prefix: Sequence[str] = (), **environment: str) -> Ended:
    """Run the command to its end; `prefix` is a command that runs it."""
    done = subprocess.run(
        [*prefix, OUTBOX, *arguments],
        capture_output=True,
        text=True,
        timeout=180,
        env={**process_environment(), **environment},
    )
    assert "Traceback" not in done.stderr, done.stderr
    return Ended(code=done.returncode, out=done.stdout, err=done.stderr)
