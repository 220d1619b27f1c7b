"""`outbox check simulate` says in words why it could not begin; tests/e2e/languages runs it."""

from __future__ import annotations

import pytest

from cli.__main__ import run
from cli.invocation.exit_codes import ExitCode
from cli.service.check_url_rules import MEANING
from devservers.loopback import free_ports
from outbox.checks.ssrf_guard import Rule

SECRET = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="


def simulate(url: str) -> int:
    return run(["check", "simulate", url, "--quiet", "--group", "billing", "--secret", SECRET])


def test_an_endpoint_that_is_not_there_is_named_with_its_address(
    capsys: pytest.CaptureFixture[str],
) -> None:
    url = f"http://127.0.0.1:{free_ports(1)[0]}/outbox/check"
    assert simulate(url) == ExitCode.UNREACHABLE
    why = "nothing listens there, or a firewall is in the way"
    assert capsys.readouterr().err == f"outbox: {url} cannot be reached: {why}\n"


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
    assert simulate(url) == ExitCode.USAGE
    assert capsys.readouterr().err == f"outbox: ENDPOINT_URL: {why}\n"
