"""Words that a command does not take are one line on stderr with what to do next, and exit 2."""

from __future__ import annotations

import pytest

from cli.__main__ import run
from cli.invocation.exit_codes import ExitCode


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            "mesage list",
            "no such command 'mesage'. Did you mean 'message'? (see `outbox --help`)",
        ),
        (
            "message lsit",
            "no such command 'lsit'. Did you mean 'list'? (see `outbox message --help`)",
        ),
        (
            "message end x --decision FOO",
            "invalid value for '--decision': 'FOO' is not one of 'COMMIT', 'ROLLBACK', 'UNKNOWN'"
            " (see `outbox message end --help`)",
        ),
        ("message show", "missing argument 'MESSAGE_ID' (see `outbox message show --help`)"),
        ("--url", "option '--url' requires an argument (see `outbox --help`)"),
    ],
)
def test_a_usage_error_is_one_line(
    words: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words.split()) == ExitCode.USAGE
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", f"outbox: {said}\n")


def test_a_wrong_word_neither_breaks_the_line_nor_controls_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["message", "show", "a", "b\n\x1b[31m"]) == ExitCode.USAGE
    said = capsys.readouterr().err
    assert (said.count("\n"), said.isprintable(), "\x1b" in said) == (1, False, False)


@pytest.mark.parametrize("words", [[], ["message"]])
def test_a_group_without_a_command_shows_its_help(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == ExitCode.USAGE
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "Commands:" in shown.err
