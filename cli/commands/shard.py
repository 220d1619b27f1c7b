"""`outbox shard`: the relay's shards, and what to do about one that has halted."""

from typing import Annotated, Any

import typer

from cli.commands.status import SHARD_COLUMNS, shard_row
from cli.context import context_of
from cli.exit_codes import CommandFailed, ExitCode
from cli.operator import operator_name
from cli.output import print_object, print_rows
from cli.stores.database import database_url, settings_or_dev
from outbox.operators.message_view import OperatorAction
from outbox.postgres.operators.operator_view import OperatorView
from outbox.relay.halt_resolution import ADVICE, Way
from outbox.relay.protocol.state import HaltReason

Shard = Annotated[int, typer.Argument(metavar="SHARD", min=0, max=15)]


def make_app() -> typer.Typer:
    """Put the group together."""
    app = typer.Typer(help="The relay's shards.", no_args_is_help=True)
    app.command("list")(list_shards)
    app.command("show")(show)
    app.command("resolve")(resolve)
    return app


def list_shards(context: typer.Context) -> None:
    """List the shards: owner, position, backlog, HALT."""
    print_rows(context_of(context), _shards(), SHARD_COLUMNS)


def show(context: typer.Context, shard: Shard) -> None:
    """Show one shard, and what to do where it has halted."""
    print_object(context_of(context), _shards()[shard])


def resolve(
    context: typer.Context,
    shard: Shard,
    *,
    accept: Annotated[bool, typer.Option("--accept", help="The stores rightly changed.")] = False,
    scan: Annotated[bool, typer.Option("--scan", help="Learn from the topics.")] = False,
    accept_duplicates: Annotated[
        bool, typer.Option("--accept-duplicates", help="Go on; some may be published twice.")
    ] = False,
    reason: Annotated[str, typer.Option(help="Why; kept in the audit log.")],
) -> None:
    """Let a halted shard go on, in one of the ways that its reason allows."""
    from cli.stores.shard_resolution import Resolution

    asked = {Way.ACCEPT: accept, Way.SCAN: scan, Way.ACCEPT_DUPLICATES: accept_duplicates}
    ways = [way for way, is_asked in asked.items() if is_asked]
    if len(ways) != 1:
        wanted = ", ".join(f"--{way}" for way in Way)
        raise CommandFailed(f"exactly one of {wanted} is wanted", ExitCode.USAGE)
    if not reason.strip():
        raise CommandFailed("--reason must say why", ExitCode.USAGE)
    action = OperatorAction(operator=operator_name(), reason=reason, key_id=None)
    done = Resolution(settings_or_dev(), shard).resolve(ways[0], action)
    print_object(context_of(context), done)


def _shards() -> list[dict[str, Any]]:
    with OperatorView(database_url()) as view:
        rows = [shard_row(shard) for shard in view.shards()]
    return [{**row, "advice": _advice(row["halt_reason"])} for row in rows]


def _advice(halt: str | None) -> str | None:
    return None if halt is None else ADVICE[HaltReason(halt)]
