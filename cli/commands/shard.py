"""`outbox shard`: shows the relay's shards and resolves halted ones."""

from typing import Annotated, Any

import typer

from cli.commands.status import SHARD_COLUMNS, shard_row
from cli.invocation.command_group import command_group
from cli.invocation.context import context_of
from cli.invocation.exit_codes import CommandFailed, ExitCode
from cli.invocation.operator import Operator, Reason, operator_action
from cli.invocation.output import print_object, print_rows
from cli.invocation.settings import database_url, settings_or_dev
from outbox.postgres.operators.operator_view import OperatorView
from outbox.relay.halt_resolution import ADVICE, HaltResolution

Shard = Annotated[
    int, typer.Argument(metavar="SHARD", min=0, max=15, help="Its number in `outbox shard list`.")
]


def make_app() -> typer.Typer:
    """Build the command group."""
    return command_group(
        "Show the relay's shards and resume halted ones.",
        {
            "list": list_shards,
            "show": show,
            "resolve": resolve,
        },
    )


def list_shards(context: typer.Context) -> None:
    """List the shards with owner, position, backlog and halt reason."""
    print_rows(context_of(context), _shards(), SHARD_COLUMNS)


def show(context: typer.Context, shard: Shard) -> None:
    """Show one shard and, if it is halted, how to resolve it."""
    print_object(context_of(context), _shards()[shard])


def resolve(
    context: typer.Context,
    shard: Shard,
    *,
    accept: Annotated[
        bool, typer.Option("--accept", help="Accept the change of the stores as correct.")
    ] = False,
    scan: Annotated[
        bool, typer.Option("--scan", help="Learn from the topics what is published.")
    ] = False,
    accept_duplicates: Annotated[
        bool,
        typer.Option("--accept-duplicates", help="Continue; some messages may be published twice."),
    ] = False,
    reason: Reason,
    operator: Operator = None,
) -> None:
    """Resume a halted shard in one of the ways that its halt reason allows."""
    from cli.stores.shard_resolution import ShardResolution

    asked = {
        HaltResolution.ACCEPT: accept,
        HaltResolution.SCAN: scan,
        HaltResolution.ACCEPT_DUPLICATES: accept_duplicates,
    }
    ways = [way for way, is_asked in asked.items() if is_asked]
    if len(ways) != 1:
        wanted = ", ".join(f"--{way}" for way in HaltResolution)
        raise CommandFailed(f"give exactly one of {wanted}", ExitCode.USAGE)
    action = operator_action(operator, reason)
    done = ShardResolution(settings_or_dev(), shard).resolve(ways[0], action)
    print_object(context_of(context), done)


def _shards() -> list[dict[str, Any]]:
    with OperatorView(database_url()) as view:
        rows = [shard_row(shard) for shard in view.rows("shards")]
    return [{**row, "advice": ADVICE.get(row["halt_reason"])} for row in rows]
