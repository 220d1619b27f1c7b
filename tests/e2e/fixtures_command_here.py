"""The `outbox` command in this process, addressed to one service."""

from __future__ import annotations

import pytest

from cli.__main__ import run
from tests.e2e.fixtures_command import Ended


class Command:
    """Runs the command in this process, addressed to one service."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str) -> Ended:
        code = run(arguments)
        printed = self._capsys.readouterr()
        return Ended(code=code, out=printed.out, err=printed.err)
