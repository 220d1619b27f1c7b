"""What `outbox dev` refuses before it starts anything."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cli.__main__ import run as outbox
from cli.invocation.exit_codes import ExitCode


def test_the_demo_without_the_producers_library_is_refused_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "outbox_client", None)
    data = tmp_path / "data"
    assert outbox(["dev", "--demo", "--data-dir", str(data)]) == ExitCode.USAGE
    (line,) = capsys.readouterr().err.splitlines()
    assert line == "outbox: the demo plays a producer: install outbox-client too, or omit --demo"
    assert not data.exists()
