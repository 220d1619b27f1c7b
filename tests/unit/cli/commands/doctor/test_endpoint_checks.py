"""A check endpoint is healthy only if it accepts our checks and refuses forged ones."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
import typer
from typer.main import get_command

from cli.app import make_app
from cli.commands.doctor.endpoint_checks import endpoint_checks, endpoint_health
from cli.invocation.context import Context, Output
from outbox.operators.health_check import HealthStatus
from tests.fixtures_http_server import QuietHandler, http_server
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


class ManyGroups(QuietHandler):
    """An API whose groups need two pages."""

    def serve(self) -> None:
        if self.command == "POST":
            self.answer_json(PASSED)
            return
        second = "cursor" in parse_qs(urlsplit(self.path).query)
        names = ["omega"] if second else ["alpha", "beta"]
        rows = [{"producer_group": name, "check_url": URL} for name in names]
        following = None if second else "more"
        self.answer_json({"data": rows, "next_cursor": following, "has_more": not second})


def test_the_endpoint_of_every_group_is_asked_however_many_there_are() -> None:
    with http_server(ManyGroups) as url:
        context = typer.Context(get_command(make_app()))
        context.obj = Context(
            output=Output.JSON, url=url, timeout_seconds=5, quiet=True, color=False, yes=False
        )
        found = [(each.check, each.detail) for each in endpoint_checks(context)]
    assert found[0] == ("api", "3 producer groups")
    assert [check for check, _ in found[1:]] == [
        "endpoint of alpha",
        "endpoint of beta",
        "endpoint of omega",
    ]
