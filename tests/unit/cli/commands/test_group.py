"""`outbox group test` fails unless the endpoint accepts our checks and refuses forged ones."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

import pytest

from cli.__main__ import run
from cli.invocation.exit_codes import ExitCode
from tests.fixtures_http_server import QuietHandler, http_server
from tests.unit.cli.commands.fixtures_probe import PASSED


def api_that_found(verdict: Mapping[str, Any]) -> AbstractContextManager[str]:
    """Serve an API whose probe of the group found this; yield its URL."""

    class Handler(QuietHandler):
        def serve(self) -> None:
            probe = ("POST", "/v1/producer-groups/billing/test")
            known = (self.command, self.path) == probe
            self.answer_json(verdict, 200 if known else 404)

    return http_server(Handler)


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
    with api_that_found(verdict) as url:
        assert run(["--url", url, "-o", "json", "group", "test", "billing"]) == ExitCode.ERROR
    printed = capsys.readouterr()
    assert json.loads(printed.out) == verdict
    assert printed.err.startswith(f"outbox: the endpoint {why}")
