"""`outbox key`: API keys. The secret part is shown once, when a key is created."""

from typing import Annotated

import typer

from cli.invocation.command_group import command_group
from cli.invocation.context import context_of
from cli.invocation.durations import duration
from cli.invocation.exit_codes import CommandFailed, ExitCode
from cli.invocation.operator import Operator, operator_name
from cli.invocation.output import print_object
from cli.service.api_client import api_client, path_of
from cli.service.api_problem import ApiProblem
from cli.service.lists import print_list
from outbox.access import Scope
from outbox.clock import SystemClock

ROOT = "/v1/api-keys"
COLUMNS = ("key_id", "name", "producer_groups", "scopes", "created_at", "expires_at")
NO_KEYS = "no keys yet: `outbox key create --help` shows how to create one"


def make_app() -> typer.Typer:
    """Build the command group."""
    return command_group(
        "Create, list and revoke API keys.",
        {
            "create": create,
            "list": list_keys,
            "revoke": revoke,
        },
    )


def create(
    context: typer.Context,
    *,
    name: Annotated[str, typer.Option(help="Purpose of the key.")],
    scope: Annotated[
        list[str],
        typer.Option(metavar="SCOPE", help=f"Repeat for several. One of {', '.join(Scope)} (all)."),
    ],
    group: Annotated[
        list[str],
        typer.Option(
            "--group", "--producer-group", metavar="NAME", help="Repeat for several; `*` is all."
        ),
    ],
    expires_in: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="Lifetime, such as 90d, 12h or 30m.",
            show_default="until it is revoked",
        ),
    ] = None,
    database: Annotated[
        bool, typer.Option("--database", help="Write to the database directly, for the first key.")
    ] = False,
) -> None:
    """Create a key and print it once; its groups may be registered later."""
    from cli.stores.bootstrap_key import create_in_database

    invocation = context_of(context)
    expires_at = SystemClock().now() + duration(expires_in, "--expires-in") if expires_in else None
    if database:
        print_object(invocation, create_in_database(name, scope, group, expires_at))
        return
    body = {"name": name, "producer_groups": group, "scopes": scope}
    if expires_at is not None:
        body["expires_at"] = expires_at.isoformat()
    with api_client(context) as api:
        print_object(invocation, api.post(ROOT, body))


def list_keys(context: typer.Context) -> None:
    """List keys, without their secrets."""
    print_list(context, ROOT, COLUMNS, none=NO_KEYS)


def revoke(
    context: typer.Context,
    key_id: Annotated[str, typer.Argument(metavar="KEY_ID", help="As `outbox key list` shows it.")],
    *,
    operator: Operator = None,
) -> None:
    """Revoke a key; processes that know it accept it for five seconds more."""
    try:
        with api_client(context) as api:
            who = {"operator": operator or operator_name()}
            api.call("DELETE", path_of(ROOT, key_id), query=who)
    except ApiProblem as problem:
        if problem.exit_code is not ExitCode.NOT_FOUND:
            raise
        line = "no valid key of your groups has this id: see `outbox key list`"
        raise CommandFailed(line, ExitCode.NOT_FOUND) from None
    context_of(context).say(f"key {key_id} is revoked")
