"""The API, and the check endpoint of each producer group as the API reaches it."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import typer

from cli.commands.doctor.refused_key import refused_key
from cli.invocation.exit_codes import CommandFailed
from cli.service.api_client import api_client
from cli.service.api_problem import ApiProblem
from outbox.operators.health_check import HealthCheck, HealthStatus, health_check
from outbox.settings.environment import load_settings

NO_KEY: Final = 401

REFUSED: Final = frozenset({401, 403})


def endpoint_checks(context: typer.Context) -> Iterator[HealthCheck]:
    """Let the API test each group's endpoint; without an API that is one warning."""
    try:
        with api_client(context) as api:
            groups = list(api.rows("/v1/producer-groups"))
            yield health_check("api", True, f"{len(groups)} producer groups")
            for group in groups:
                name, check_url = str(group["producer_group"]), str(group["check_url"])
                yield endpoint_health(api.post, name, check_url)
    except ApiProblem as problem:
        yield health_check("api", False, _refusal(problem), HealthStatus.WARNING)
    except CommandFailed as error:
        yield health_check("api", False, str(error), HealthStatus.WARNING)


def _refusal(problem: ApiProblem) -> str:
    """Return what the API refuses; of a key also whether it or the pepper may be wrong."""
    line = problem.in_one_line()
    if problem.status != NO_KEY:
        return line
    settings = load_settings()
    key, pepper = settings.api_key, settings.auth_pepper
    if key is None:
        return line
    secrets = (key.get_secret_value(), None if pepper is None else pepper.get_secret_value())
    return f"{line.removesuffix('.')}; {refused_key(*secrets)}"


def endpoint_health(post: Callable[[str], Any], group: str, check_url: str) -> HealthCheck:
    """Let the API ask one endpoint; what is wrong comes with its address and the next command."""
    try:
        verdict = post(f"/v1/producer-groups/{group}/test")
    except ApiProblem as problem:
        return health_check(f"endpoint of {group}", False, problem.in_one_line())
    except CommandFailed as error:
        return health_check(f"endpoint of {group}", False, str(error))
    fault = fault_of(verdict)
    detail = str(verdict["outcome"])
    if fault is not None:
        detail = f"{fault} ({detail}): {check_url}; try `outbox group test {group}`"
    return health_check(f"endpoint of {group}", fault is None, detail)


def fault_of(verdict: Mapping[str, Any]) -> str | None:
    """Return what the test of an endpoint shows to be wrong; the first fault counts."""
    status = verdict.get("http_status")
    if not verdict.get("reachable"):
        return "cannot be reached"
    if not verdict.get("signature_accepted"):
        if status in REFUSED:
            return "refuses our signed checks"
        return "gives no valid verdict" if status in (None, 200) else f"answers {status}"
    return None if verdict.get("forgery_refused") else "accepts forged checks"
