"""`outbox check simulate` says in words why it cannot begin."""

from __future__ import annotations

import pytest

from cli.__main__ import run
from cli.invocation.exit_codes import ExitCode
from cli.service.check_url_rules import MEANING
from outbox.checks.ssrf_guard import Rule

SECRET = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("nonsense", MEANING[Rule.URL_FORM]),
        ("ftp://127.0.0.1/x", MEANING[Rule.SCHEME]),
    ],
)
def test_a_url_that_cannot_be_called_is_a_usage_error(
    url: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["check", "simulate", url, "--quiet", "--group", "billing", "--secret", SECRET]
    assert run(words) == ExitCode.USAGE
    assert capsys.readouterr().err == f"outbox: ENDPOINT_URL: {why}\n"
