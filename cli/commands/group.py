"""`outbox group`: producer groups with their check endpoints and secrets."""

from inspect import signature
from typing import Annotated, Any

import typer
import yaml  # type: ignore[import-untyped]

from cli.commands.doctor.endpoint_checks import fault_of
from cli.invocation.command_group import command_group
from cli.invocation.context import context_of
from cli.invocation.exit_codes import CommandFailed, ExitCode
from cli.invocation.operator import Operator, Reason, who_and_why
from cli.invocation.output import Row, print_object, print_rows
from cli.service.api_client import Answer, ApiClient, api_client, path_of
from cli.service.api_problem import ApiProblem
from cli.service.lists import print_list
from outbox.checks.producer_group import Backoff, OnCheckMax

ROOT = "/v1/producer-groups"
COLUMNS = ("producer_group", "check_url", "check_interval_seconds", "check_max", "paused")
NO_GROUPS = "no producer groups yet: register one with `outbox group set NAME --check-url URL`"
APPLIED = ("producer_group", "difference", "check_secret")
NO_FIELDS = ("context", "name")

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
Groups = Annotated[
    typer.FileBinaryRead, typer.Argument(metavar="FILE", help="Groups in YAML; - reads the input.")
]


def make_app() -> typer.Typer:
    """Build the command group."""
    return command_group(
        "Register, show and test producer groups.",
        {
            "apply": apply,
            "set": set_group,
            "show": show,
            "list": list_groups,
            "test": test,
            "pause": pause,
            "resume": resume,
            "rotate-secret": rotate_secret,
        },
    )


def apply(context: typer.Context, file: Groups) -> None:
    """Register or change each group of a file, and show what differed.

    A group is its `producer_group` and the fields of a PUT. A field that is not given keeps its
    value; a group that is not in the file is not changed. A secret is shown if it is a fresh one.
    """
    rows: list[Row] = []
    wanted = _read(file)
    with api_client(context) as api:
        try:
            rows.extend(_applied(api, group) for group in wanted)
        finally:
            print_rows(context_of(context), rows, APPLIED, none="no group was applied")


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
) -> None:
    """Create a group or change the given fields; a new group's secret is shown once.

    A field that is not given keeps its value; in a new group it gets the service's default.
    """
    given = context.params.items()
    fields = {each: value for each, value in given if each in _fields() and value not in (None, ())}
    with api_client(context) as api:
        _, changed = _put(api, name, fields)
    print_object(context_of(context), changed)


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


def _put(api: ApiClient, name: str, fields: Row) -> tuple[Row, Row]:
    """Change these fields of a group, or register it; return the group before and after."""
    stored = Answer(body={}, etag=None)
    try:
        stored = api.call("GET", _path(name))
    except ApiProblem as problem:
        if problem.exit_code is not ExitCode.NOT_FOUND or "check_url" not in fields:
            raise
    kept = {field: value for field, value in stored.body.items() if field in _fields()}
    headers = {"if-match": stored.etag} if stored.etag else None
    changed = api.call("PUT", _path(name), body={**kept, **fields}, headers=headers)
    return stored.body, changed.body


def _fields() -> list[str]:
    """Return the fields of a group: the options of ``set`` except those about the call itself."""
    return [name for name in signature(set_group).parameters if name not in NO_FIELDS]


def _read(file: typer.FileBinaryRead) -> list[dict[str, Any]]:
    try:
        groups = yaml.safe_load(file)
    except yaml.YAMLError as error:
        line = " ".join(f"{file.name}: {error}".split())
        raise CommandFailed(line, ExitCode.USAGE) from None
    if isinstance(groups, list) and all(
        isinstance(group, dict) and "producer_group" in group for group in groups
    ):
        return groups
    line = f"{file.name} must be a list of groups, each with its producer_group"
    raise CommandFailed(line, ExitCode.USAGE)


def _applied(api: ApiClient, wanted: dict[str, Any]) -> Row:
    name = str(wanted.pop("producer_group"))
    try:
        before, after = _put(api, name, wanted)
    except ApiProblem as problem:
        problem.problem["producer_group"] = name
        raise
    pairs = {field: (before.get(field), after.get(field)) for field in (*wanted, "version")}
    changed = {field: f"{old} -> {new}" for field, (old, new) in pairs.items() if old != new}
    secret = after.get("check_secret")
    return {"producer_group": name, "difference": changed, "check_secret": secret}


def _path(name: str) -> str:
    return path_of(ROOT, name)
