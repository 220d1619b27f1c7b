"""Every failure ends with its documented exit code and one line."""

import pytest

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
