"""The help of each command explains every option, and a list without rows says so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from cli.app import make_app
from cli.invocation.exit_codes import ExitCode
from tests.unit.cli.fixtures_api import api_that_answers

Parameter = Any
"""An option or an argument; typer brings a copy of click of its own."""


def parameters(command: Any, words: str = "") -> Iterator[tuple[str, Parameter]]:
    """Yield every command with each of its own parameters."""
    for name, inner in getattr(command, "commands", {}).items():
        yield from parameters(inner, f"{words} {name}")
    for each in command.params:
        yield words, each


def test_every_option_and_argument_has_a_help() -> None:
    shown = [
        (command, each)
        for command, each in parameters(typer.main.get_command(make_app()))
        if command and not each.hidden
    ]
    assert len(shown) > 100
    assert [(command, each.opts) for command, each in shown if not each.help] == []


def test_the_help_of_the_command_explains_every_exit_code() -> None:
    shown = CliRunner().invoke(make_app(), ["--help"]).output
    listed = re.findall(r"\d+", " ".join(shown.split()).partition("Exit codes: ")[2])
    assert [int(each) for each in listed] == list(ExitCode)


def test_a_group_has_the_same_two_names_everywhere() -> None:
    pair = {"--group", "--producer-group"}
    named = [
        (command, pair & set(each.opts))
        for command, each in parameters(typer.main.get_command(make_app()))
        if pair & set(each.opts)
    ]
    assert len(named) >= 5
    assert [(command, found) for command, found in named if found != pair] == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("message list", "outbox group set"),
        ("message list --state PARKED", "no message matches"),
        ("held list", "no held records"),
        ("reconcile show RUN --kind coverage", "no findings of the kind coverage"),
    ],
)
def test_a_list_without_rows_says_so_and_its_data_stays_empty(
    words: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with api_that_answers({"data": [], "has_more": False, "next_cursor": None}) as api:
        assert api.run("-o", "table", *words.split()) == ExitCode.OK
        shown = capsys.readouterr()
        assert api.run("-o", "jsonl", *words.split()) == ExitCode.OK
        lines = capsys.readouterr()
    assert shown.out == lines.out == lines.err == ""
    assert told in shown.err
    assert len(shown.err.splitlines()) == 1
