"""`outbox group`: producer groups with their check endpoints and secrets."""

import json
from enum import StrEnum
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.commands.doctor.endpoint_checks import fault_of
from cli.invocation.command_group import command_group
from cli.invocation.context import context_of
from cli.invocation.exit_codes import CommandFailed, ExitCode
from cli.invocation.operator import Operator, Reason, who_and_why
from cli.invocation.output import print_object
from cli.service.api_client import Answer, ApiClient, api_client, path_of
from cli.service.api_problem import ApiProblem
from cli.service.lists import print_list

ROOT = "/v1/producer-groups"
COLUMNS = ("producer_group", "check_url", "check_interval_seconds", "check_max", "paused")
NO_GROUPS = "no producer groups yet: register one with `outbox group set NAME --check-url URL`"
NO_FIELDS = ("context", "name", "file")

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the producer group.")]
CheckInterval = Annotated[
    int | None,
    typer.Option(metavar="SECONDS", help="Time from one check of a message to the next."),
]
CheckTimeout = Annotated[
    int | None, typer.Option(metavar="SECONDS", help="Time limit of one call of the endpoint.")
]
TransactionTimeout = Annotated[
    int | None, typer.Option(metavar="SECONDS", help="Age of a message before its first check.")
]
Topics = Annotated[
    list[str] | None,
    typer.Option(
        "--topic", metavar="TOPIC", help="A topic it may use, or PREFIX*; repeat for several."
    ),
]
MaxAge = Annotated[
    int | None,
    typer.Option(metavar="SECONDS", help="Age at which an undecided message is parked."),
]
WholeGroup = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="The whole group as JSON, instead of the options above."),
]


class OnCheckMax(StrEnum):
    """What happens after the last allowed check."""

    PARK = "park"
    ROLLBACK = "rollback"


class Backoff(StrEnum):
    """How the interval between checks grows."""

    FIXED = "fixed"
    EXPONENTIAL = "exponential"


def make_app() -> typer.Typer:
    """Build the command group."""
    return command_group(
        "Register, show and test producer groups.",
        {
            "set": set_group,
            "show": show,
            "list": list_groups,
            "test": test,
            "pause": pause,
            "resume": resume,
            "rotate-secret": rotate_secret,
        },
    )


def set_group(
    context: typer.Context,
    name: Name,
    *,
    check_url: Annotated[
        str | None, typer.Option(metavar="URL", help="Address of the check endpoint.")
    ] = None,
    check_interval_seconds: CheckInterval = None,
    check_max: Annotated[
        int | None, typer.Option(metavar="COUNT", help="Checks before --on-check-max applies.")
    ] = None,
    check_timeout_seconds: CheckTimeout = None,
    transaction_timeout_seconds: TransactionTimeout = None,
    on_check_max: Annotated[
        OnCheckMax | None, typer.Option(help="What happens after the last allowed check.")
    ] = None,
    backoff: Annotated[
        Backoff | None, typer.Option(help="fixed, or exponential: the interval doubles each time.")
    ] = None,
    max_inflight: Annotated[
        int | None, typer.Option(metavar="COUNT", help="Calls of the endpoint at the same time.")
    ] = None,
    batch_check: Annotated[
        bool | None, typer.Option(help="Ask about up to 100 messages in one call.")
    ] = None,
    check_payload: Annotated[
        bool | None, typer.Option(help="Send the value with each check.")
    ] = None,
    topics: Topics = None,
    max_age_seconds: MaxAge = None,
    file: WholeGroup = None,
) -> None:
    """Create a group or change the given fields; a new group's secret is shown once.

    A field that is not given keeps its value; in a new group it gets the service's default.
    """
    given = {field: context.params[field] for field in _fields()}
    flags = {field: value for field, value in given.items() if value not in (None, (), [])}
    if file is not None and flags:
        raise CommandFailed(
            "--file holds the whole group: use no other field flag with it", ExitCode.USAGE
        )
    with api_client(context) as api:
        stored = _stored(api, name)
        if stored is None and file is None and check_url is None:
            line = (
                f"{name!r} is not registered, or of another group than the key's: see `outbox group"
                " list`; --check-url registers it"
            )
            raise CommandFailed(line, ExitCode.NOT_FOUND)
        body = _read(file) if file is not None else {**_put_fields(stored), **flags}
        headers = {"if-match": stored.etag} if stored and stored.etag else None
        answer = api.call("PUT", _path(name), body=body, headers=headers)
    print_object(context_of(context), answer.body)


def show(context: typer.Context, name: Name) -> None:
    """Show one group."""
    with api_client(context) as api:
        print_object(context_of(context), api.get(_path(name)))


def list_groups(context: typer.Context) -> None:
    """List the groups."""
    print_list(context, ROOT, COLUMNS, none=NO_GROUPS)


def test(context: typer.Context, name: Name) -> None:
    """Send a signed and a forged check to the endpoint; exits 1 if it fails."""
    with api_client(context) as api:
        verdict = api.post(f"{_path(name)}/test")
    invocation = context_of(context)
    print_object(invocation, verdict)
    fault = fault_of(verdict)
    change = "" if verdict.get("reachable") else ", start it or `group set` another --check-url"
    if fault is not None:
        raise CommandFailed(f"the endpoint {fault}: see `outbox group show {name}`{change}")


def pause(context: typer.Context, name: Name, *, reason: Reason, operator: Operator = None) -> None:
    """Stop the checks of a group; prepare, end and publishing continue."""
    _set_paused(context, f"{_path(name)}/pause", reason, operator)


def resume(
    context: typer.Context, name: Name, *, reason: Reason, operator: Operator = None
) -> None:
    """Resume the checks of a group."""
    _set_paused(context, f"{_path(name)}/resume", reason, operator)


def _set_paused(context: typer.Context, path: str, reason: str, operator: str | None) -> None:
    with api_client(context) as api:
        answer = api.post(path, who_and_why(operator, reason))
    print_object(context_of(context), answer)


def rotate_secret(
    context: typer.Context,
    name: Name,
    *,
    overlap_seconds: Annotated[
        int,
        typer.Option(
            metavar="SECONDS", min=0, max=604_800, help="For this long the old secret signs too."
        ),
    ] = 86_400,
) -> None:
    """Create a new check secret and print it once."""
    with api_client(context) as api:
        answer = api.post(f"{_path(name)}/rotate-secret", {"overlap_seconds": overlap_seconds})
    print_object(context_of(context), answer)


def _stored(api: ApiClient, name: str) -> Answer | None:
    try:
        return api.call("GET", _path(name))
    except ApiProblem as problem:
        if problem.exit_code is ExitCode.NOT_FOUND:
            return None
        raise


def _put_fields(stored: Answer | None) -> dict[str, Any]:
    """Return the fields of the stored group that a PUT takes."""
    return (
        {field: stored.body[field] for field in _fields() if field in stored.body} if stored else {}
    )


def _fields() -> list[str]:
    """Return the fields of a group: the options of ``set`` except those about the call itself."""
    return [name for name in signature(set_group).parameters if name not in NO_FIELDS]


def _read(file: Path) -> dict[str, Any]:
    try:
        body = json.loads(file.read_text("utf-8"))
    except OSError as error:
        raise CommandFailed(f"{file}: {error.strerror}", ExitCode.USAGE) from None
    except ValueError as error:
        raise CommandFailed(f"{file}: {error}", ExitCode.USAGE) from None
    if not isinstance(body, dict):
        raise CommandFailed(f"{file}: the content must be a JSON object", ExitCode.USAGE)
    return body


def _path(name: str) -> str:
    return path_of(ROOT, name)
