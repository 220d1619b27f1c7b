"""The API, and the check endpoint of each producer group as the API reaches it."""

from collections.abc import Callable, Iterator
from typing import Any, Final

import typer

from cli.commands.doctor.health_check import HealthCheck, HealthStatus, finding
from cli.invocation.exit_codes import CommandFailed
from cli.service.api_client import api_client
from cli.service.api_problem import ApiProblem

FAULTS: Final = {
    "reachable": "cannot be reached",
    "signature_accepted": "refuses our signed checks",
    "forgery_refused": "accepts forged checks",
}
"""What is wrong with an endpoint, by the member of its test that is false; the first one counts."""


def endpoint_checks(context: typer.Context) -> Iterator[HealthCheck]:
    """Let the API test each group's endpoint; without an API that is one warning."""
    try:
        with api_client(context) as api:
            groups = api.get("/v1/producer-groups")["data"]
            yield finding("api", True, f"{len(groups)} producer groups")
            for group in groups:
                yield _endpoint(api.post, str(group["producer_group"]))
    except (ApiProblem, CommandFailed) as error:
        yield finding("api", False, str(error), HealthStatus.WARNING)


def _endpoint(post: Callable[[str], Any], group: str) -> HealthCheck:
    try:
        verdict = post(f"/v1/producer-groups/{group}/test")
    except (ApiProblem, CommandFailed) as error:
        return finding(f"endpoint of {group}", False, str(error))
    faults = [text for member, text in FAULTS.items() if not verdict.get(member)]
    detail = f"{faults[0]} ({verdict['outcome']})" if faults else str(verdict["outcome"])
    return finding(f"endpoint of {group}", not faults, detail)
