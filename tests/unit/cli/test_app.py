"""The help of each command explains every option, and a list without rows says so."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import typer
from typer.testing import CliRunner

from cli.__main__ import run
from cli.app import make_app
from cli.invocation.exit_codes import ExitCode
from tests.fixtures_http_server import QuietHandler, http_server

Described = tuple[str, str, str]
"""A command, its option, and the option's help."""


def options(command: object, words: tuple[str, ...] = ()) -> Iterator[Described]:
    """Yield every option and argument that a user sees."""
    for name, inner in getattr(command, "commands", {}).items():
        yield from options(inner, (*words, name))
    if hasattr(command, "commands"):
        return
    for each in getattr(command, "params", ()):
        if not each.hidden:
            yield " ".join(words), each.opts[0], each.help or ""


def option_names(command: object, words: tuple[str, ...] = ()) -> Iterator[tuple[str, set[str]]]:
    """Yield each command and all names of one of its options."""
    for name, inner in getattr(command, "commands", {}).items():
        yield from option_names(inner, (*words, name))
    for each in getattr(command, "params", ()):
        yield " ".join(words), {*each.opts}


def test_every_option_and_argument_has_a_help() -> None:
    described = list(options(typer.main.get_command(make_app())))
    assert len(described) > 100
    assert [(command, option) for command, option, text in described if not text] == []


def test_the_help_of_the_command_explains_every_exit_code() -> None:
    shown = CliRunner().invoke(make_app(), ["--help"]).output
    listed = re.findall(r"\d+", " ".join(shown.split()).partition("Exit codes: ")[2])
    assert [int(each) for each in listed] == list(ExitCode)


def test_a_group_has_the_same_two_names_everywhere() -> None:
    pairs = {"--group", "--producer-group"}
    named = [
        (command, found)
        for command, names in option_names(typer.main.get_command(make_app()))
        if (found := pairs & names)
    ]
    assert len(named) >= 5
    assert [(command, found) for command, found in named if found != pairs] == []


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
    class Handler(QuietHandler):
        def serve(self) -> None:
            self.answer_json({"data": [], "has_more": False, "next_cursor": None}, 200)

    with http_server(Handler) as url:
        assert run(["--url", url, "-o", "table", *words.split()]) == ExitCode.OK
        shown = capsys.readouterr()
        assert run(["--url", url, "-o", "jsonl", *words.split()]) == ExitCode.OK
        lines = capsys.readouterr()
    assert shown.out == lines.out == lines.err == ""
    assert told in shown.err
    assert len(shown.err.splitlines()) == 1
