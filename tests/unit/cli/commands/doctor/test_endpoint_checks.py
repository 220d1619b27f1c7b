"""A check endpoint is healthy only if it accepts our checks and refuses forged ones."""

from __future__ import annotations

import pytest

from cli.commands.doctor.endpoint_checks import endpoint_health
from outbox.operators.health_check import HealthStatus
from tests.unit.cli.commands.fixtures_probe import PASSED

URL = "http://billing.example/check"


@pytest.mark.parametrize(
    ("failed", "status", "detail"),
    [
        ("reachable", None, "cannot be reached (unknown)"),
        ("signature_accepted", 401, "refuses our signed checks (unknown)"),
        ("signature_accepted", 500, "answers 500 (unknown)"),
        ("signature_accepted", 200, "gives no valid verdict (unknown)"),
        ("forgery_refused", 200, "accepts forged checks (unknown)"),
    ],
)
def test_an_endpoint_that_accepts_forgeries_or_refuses_checks_fails(
    failed: str, status: int | None, detail: str
) -> None:
    found = PASSED | {failed: False, "http_status": status}
    check = endpoint_health(lambda _: found, "billing", URL)
    next_step = f"{URL}; try `outbox group test billing`"
    assert (check.verdict, check.detail) == (HealthStatus.FAILED, f"{detail}: {next_step}")
