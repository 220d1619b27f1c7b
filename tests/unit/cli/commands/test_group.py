"""`outbox group test` fails unless the endpoint accepts our checks and refuses forged ones."""

from __future__ import annotations

import json

import pytest

from cli.invocation.exit_codes import ExitCode
from tests.unit.cli.commands.fixtures_probe import PASSED
from tests.unit.cli.fixtures_api import api_that_answers


@pytest.mark.parametrize(
    ("failed", "why"),
    [
        ("reachable", "cannot be reached: see `outbox group show billing`, start it or"),
        ("signature_accepted", "gives no valid verdict: see `outbox group show billing`"),
        ("forgery_refused", "accepts forged checks: see `outbox group show billing`"),
    ],
)
def test_a_probe_of_an_endpoint_that_accepts_forgeries_or_refuses_checks_fails(
    failed: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    verdict = PASSED | {failed: False}
    with api_that_answers(verdict) as api:
        assert api.run("-o", "json", "group", "test", "billing") == ExitCode.ERROR
    assert api.asked == [("POST /v1/producer-groups/billing/test", None)]
    printed = capsys.readouterr()
    assert json.loads(printed.out) == verdict
    assert printed.err.startswith(f"outbox: the endpoint {why}")
