"""A setting that is wrong is named alone; one that is missing, with both ways to set it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.__main__ import run
from cli.invocation.exit_codes import ExitCode


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OUTBOX_DATABASE_URL", raising=False)


@pytest.mark.parametrize("words", [("status",), ("doctor",), ("migrate", "status")])
def test_without_a_database_both_ways_to_name_one_are_shown(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == ExitCode.USAGE
    line = "outbox: OUTBOX_DATABASE_URL is not set, and no `outbox dev` runs in this folder\n"
    assert capsys.readouterr().err == line


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("OUTBOX_NOPE", "1", "OUTBOX_NOPE: no such setting"),
        ("OUTBOX_DATABASE_URL", "nonsense", "OUTBOX_DATABASE_URL: is not a PostgreSQL address"),
    ],
)
def test_a_wrong_setting_has_nothing_to_do_with_outbox_dev(
    name: str,
    value: str,
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(name, value)
    assert run(["status"]) == ExitCode.USAGE
    error = capsys.readouterr().err
    assert error.startswith(f"outbox: {said}")
    assert "outbox dev" not in error
