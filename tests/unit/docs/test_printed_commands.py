"""Each command of `outbox` that a page prints is one that the program takes, option by option."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
import typer

from cli.app import make_app
from spark.__main__ import _parser
from tests.unit.docs.fixtures_pages import EDITED, name

INLINE: Final = re.compile(r"`(?:\.venv/bin/)?outbox ([^`]+)`")
BLOCK: Final = re.compile(r"^ *```(?:sh)?\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
LINE: Final = re.compile(
    r"^ *(?:\w+=\S* )*(?:export \w+=\$\()?(?:\.venv/bin/)?outbox (.*)$"
    r"|^docker compose exec .*? (?:api|checker) outbox (.*)$"
    r"|^docker compose run .*? (?:api|checker|migrate) (.*)$",
    re.MULTILINE,
)
"""Its variables, and the containers of the stack."""
END: Final = re.compile(r"[|<>]\s|&&|;")
"""Where a shell's next command begins."""
ALWAYS: Final = ("--", "--help")
"""The first stands for an option that the reader chooses: `--…`."""


@cache
def commands() -> Any:
    """Return the command with all its groups."""
    return typer.main.get_command(make_app())


def printed(text: str) -> Iterator[str]:
    """Yield what follows the word `outbox` in each printed command; a line may be continued."""
    bare = BLOCK.sub("", text)
    yield from (each.replace("\n", " ") for each in INLINE.findall(bare))
    for block in BLOCK.findall(text):
        for found in LINE.findall(re.sub(r"\\?\n {2,}", " ", block)):
            yield END.split("".join(found))[0]


def unknown(command: Any, words: list[str], of_all: Mapping[str, Any]) -> str | None:
    """Return the first word that is no command, and the first option that the command lacks."""
    while words and hasattr(command, "commands"):
        word = words.pop(0)
        if not word.startswith("-"):
            choices = [each for each in word.split("|") if each not in command.commands]
            if choices:
                return None if word in ("…", "COMMAND") else word
            command = command.commands[word.split("|")[0]]
        elif word not in {*ALWAYS, *of_all}:
            return word
    if command.context_settings.get("ignore_unknown_options"):
        known = {*ALWAYS, *of_all, *audit_options()}
    else:
        known = {
            *ALWAYS,
            *of_all,
            *(option for each in command.params for option in names_of(each)),
        }
    bare = [each.strip("[]…,`").partition("=")[0] for each in words]
    return next((each for each in bare if each.startswith("-") and each not in known), None)


@cache
def audit_options() -> set[str]:
    """Return the options of the program that `reconcile run` becomes."""
    subparsers = _parser()._subparsers
    assert subparsers is not None
    choices: Any = subparsers._group_actions[0].choices
    return {option for each in choices.values() for option in each._option_string_actions}


def names_of(parameter: Any) -> list[str]:
    """Return every spelling of an option."""
    return [*parameter.opts, *parameter.secondary_opts]


@pytest.mark.parametrize("page", EDITED, ids=name)
def test_a_page_prints_commands_that_there_are(page: Path) -> None:
    program = commands()
    of_all = {option: each for each in program.params for option in each.opts}
    found = {
        text: word
        for text in printed(page.read_text("utf-8"))
        if (word := unknown(program, text.split(), of_all)) is not None
    }
    assert found == {}
