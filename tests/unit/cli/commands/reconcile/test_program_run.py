"""`outbox reconcile run` and `rerun` have the options of the program that they become."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
import typer
from typer.main import get_command

from cli.__main__ import run as outbox
from cli.commands.reconcile.program_run import passed_on, rerun, run
from spark.__main__ import main

OF_THE_PROGRAM = {"--help", "--output"}
"""The command has these as flags of every command."""


@pytest.mark.parametrize("command", [run, rerun])
def test_the_command_and_the_program_have_the_same_options(
    command: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    app = typer.Typer(add_completion=False)
    app.command()(command)
    ours = {name for each in get_command(app).params for name in each.opts if name[0] == "-"}
    with pytest.raises(SystemExit):
        main([command.__name__, "--help"])
    usage = capsys.readouterr().out.split("options:")[1]
    theirs = set(re.findall(r"^ +(?:-\w\S*(?: \S+)?, )?(--[a-z][\w-]*)", usage, re.MULTILINE))
    assert ours == theirs - OF_THE_PROGRAM


def test_options_are_passed_on_as_they_were_given() -> None:
    given = {
        "run_id": "one",
        "full": True,
        "show_keys": False,
        "since": "2026-12-01T00:00:00Z",
        "until": None,
        "topic": ("a", "b"),
        "most": "missing=0",
        "fail_on": "high",
    }
    assert list(passed_on(given)) == [
        "--full",
        "--from=2026-12-01T00:00:00Z",
        "--topic=a",
        "--topic=b",
        "--max=missing=0",
        "--fail-on=high",
    ]


def test_the_help_is_in_the_style_of_the_other_commands(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for words in (("reconcile", "run"), ("reconcile", "rerun"), ("reconcile", "list")):
        assert outbox([*words, "--help"]) == 0
        shown = capsys.readouterr().out
        assert shown.lstrip().startswith(f"Usage: outbox {' '.join(words)} [OPTIONS]")
        assert "Example: outbox" in shown


def test_the_help_of_a_rerun_promises_no_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    outbox(["reconcile", "rerun", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "takes as long" in shown
    assert "seconds" not in shown
