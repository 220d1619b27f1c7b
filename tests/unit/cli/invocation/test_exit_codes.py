"""Every failure ends with its documented exit code and one line."""

import json

import pytest

from cli.__main__ import run
from cli.invocation.exit_codes import CommandFailed, ExitCode
from cli.program import exit_code_of
from cli.service.api_problem import ApiProblem
from outbox.errors import ConfigurationError, DatabaseUnavailable, KafkaUnavailable


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (401, ExitCode.REFUSED),
        (404, ExitCode.NOT_FOUND),
        (409, ExitCode.CONFLICT),
        (422, ExitCode.USAGE),
        (503, ExitCode.UNREACHABLE),
        (500, ExitCode.ERROR),
    ],
)
def test_a_problem_status_has_an_exit_code(status: int, code: ExitCode) -> None:
    assert ApiProblem(status, {"title": "refused"}).exit_code is code


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigurationError("OUTBOX_X: no such setting"), ExitCode.USAGE),
        (DatabaseUnavailable("refused"), ExitCode.UNREACHABLE),
        (KafkaUnavailable("timed out"), ExitCode.UNREACHABLE),
        (CommandFailed("in use", ExitCode.CONFLICT), ExitCode.CONFLICT),
        (ZeroDivisionError("an internal fault"), ExitCode.ERROR),
    ],
)
def test_an_error_has_an_exit_code(error: Exception, code: ExitCode) -> None:
    assert exit_code_of(error) is code


def test_an_unknown_command_is_a_usage_error() -> None:
    assert run(["no-such-command"]) == ExitCode.USAGE


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == ExitCode.OK
    assert capsys.readouterr().out.strip()


def test_an_unknown_setting_stops_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OUTBOX_CHEK_MAX", "3")
    assert run(["config", "show"]) == ExitCode.USAGE
    line = (
        "outbox: OUTBOX_CHEK_MAX: no such setting; docs/reference/settings.md lists all settings\n"
    )
    assert capsys.readouterr().err == line


def test_secrets_are_not_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OUTBOX_DATABASE_URL", "postgresql://u:canary@h/d")
    assert run(["config", "show", "-o", "json"]) == ExitCode.OK
    shown = {row["setting"]: row for row in json.loads(capsys.readouterr().out)}
    assert shown["OUTBOX_DATABASE_URL"]["value"] == "(secret)"
    assert shown["OUTBOX_DATABASE_URL"]["source"] == "OUTBOX_DATABASE_URL"
    assert shown["OUTBOX_CHECK_MAX"] == {
        "setting": "OUTBOX_CHECK_MAX",
        "value": 15,
        "source": "default",
    }
