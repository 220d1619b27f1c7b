"""`outbox audit`: who intervened in what, and why."""

from typing import Annotated, Final

import typer

from cli.invocation.command_group import command_group
from cli.service.lists import Cursor, Limit, print_page

ROOT: Final = "/v1/audit-log"
COLUMNS: Final = ("at", "action", "target", "operator", "reason", "key_id", "detail")


def make_app() -> typer.Typer:
    """Build the command group."""
    return command_group(
        "Show the audit log: who intervened in what, and why.", {"list": list_entries}
    )


def list_entries(
    context: typer.Context,
    *,
    operator: Annotated[str | None, typer.Option(help="Who intervened.")] = None,
    action: Annotated[
        str | None, typer.Option(help="What was done, such as message.force_end.")
    ] = None,
    producer_group: Annotated[
        str | None,
        typer.Option("--group", "--producer-group", help="Producer group of the message."),
    ] = None,
    topic: Annotated[str | None, typer.Option(help="Topic of the message.")] = None,
    transaction_id: Annotated[
        str | None, typer.Option(help="The producer's own id of the message.")
    ] = None,
    message_id: Annotated[str | None, typer.Option(help="Id of the message.")] = None,
    key_id: Annotated[str | None, typer.Option(help="Id of the API key that was used.")] = None,
    at_from: Annotated[
        str | None, typer.Option(help="From this time, such as 2026-09-21T14:00:00Z.")
    ] = None,
    at_to: Annotated[str | None, typer.Option(help="Before this time.")] = None,
    limit: Limit = None,
    cursor: Cursor = None,
) -> None:
    """List interventions, newest first."""
    print_page(context, ROOT, COLUMNS, none="no intervention matches")
