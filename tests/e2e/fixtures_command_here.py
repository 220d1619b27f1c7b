"""The `outbox` command in this process, where no interpreter has to start."""

from __future__ import annotations

import pytest

from cli.__main__ import run
from tests.e2e.fixtures_command import Ended


class Command:
    """Runs the command in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str, **environment: str) -> Ended:
        """Run it to its end, with these further variables of the environment."""
        with pytest.MonkeyPatch.context() as changed:
            for name, text in environment.items():
                changed.setenv(name, text)
            code = run(arguments)
        printed = self._capsys.readouterr()
        return Ended(code=code, out=printed.out, err=printed.err)
