"""A check endpoint is healthy only if it accepts our checks and refuses forged ones."""

from __future__ import annotations

import pytest

from cli.commands.doctor.endpoint_checks import endpoint_finding
from outbox.operators.health_check import HealthStatus
from tests.unit.cli.commands.fixtures_probe import PASSED

URL = "http://billing.example/check"


@pytest.mark.parametrize(
    ("failed", "detail"),
    [
        ("reachable", "cannot be reached (unknown)"),
        ("signature_accepted", "refuses our signed checks (unknown)"),
        ("forgery_refused", "accepts forged checks (unknown)"),
    ],
)
def test_an_endpoint_that_accepts_forgeries_or_refuses_checks_fails(
    failed: str, detail: str
) -> None:
    check = endpoint_finding(lambda _: PASSED | {failed: False}, "billing", URL)
    next_step = f"{URL}; try `outbox group test billing`"
    assert (check.verdict, check.detail) == (HealthStatus.FAILED, f"{detail}: {next_step}")


def test_an_endpoint_that_passes_its_test_is_healthy() -> None:
    check = endpoint_finding(lambda _: PASSED, "billing", URL)
    assert (check.verdict, check.detail) == (HealthStatus.OK, "unknown")
