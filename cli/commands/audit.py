"""`outbox audit`: who intervened in what, and why."""

from pathlib import Path
from typing import Annotated, Final

import typer

from cli.invocation.command_group import command_group
from cli.invocation.context import context_of
from cli.invocation.exit_codes import CommandFailed, ExitCode
from cli.invocation.output import print_object
from cli.service.api_client import api_client
from cli.service.lists import Cursor, Limit, at_most, print_page
from outbox.operators.csv_line import csv_line

ROOT: Final = "/v1/audit-log"
COLUMNS: Final = ("at", "action", "target", "operator", "reason", "key_id", "detail")
NO_FILTERS: Final = ("file", "max_items")
TOO_MANY: Final = "entries match: give narrower filters, or raise --max-items"

Operator = Annotated[str | None, typer.Option(help="Who intervened.")]
Action = Annotated[str | None, typer.Option(help="What was done, such as message.force_end.")]
Group = Annotated[
    str | None, typer.Option("--group", "--producer-group", help="Producer group of the message.")
]
Topic = Annotated[str | None, typer.Option(help="Topic of the message.")]
Transaction = Annotated[str | None, typer.Option(help="The producer's own id of the message.")]
MessageId = Annotated[str | None, typer.Option(help="Id of the message.")]
KeyId = Annotated[str | None, typer.Option(help="Id of the API key that was used.")]
AtFrom = Annotated[str | None, typer.Option(help="From this time, such as 2026-09-21T14:00:00Z.")]
AtTo = Annotated[str | None, typer.Option(help="Before this time.")]


def make_app() -> typer.Typer:
    """Build the command group."""
    return command_group(
        "Show and export the audit log: who intervened in what, and why.",
        {
            "list": list_entries,
            "export": export,
        },
    )


def list_entries(
    context: typer.Context,
    *,
    operator: Operator = None,
    action: Action = None,
    producer_group: Group = None,
    topic: Topic = None,
    transaction_id: Transaction = None,
    message_id: MessageId = None,
    key_id: KeyId = None,
    at_from: AtFrom = None,
    at_to: AtTo = None,
    limit: Limit = None,
    cursor: Cursor = None,
) -> None:
    """List interventions, newest first."""
    print_page(context, ROOT, COLUMNS, none="no intervention matches")


def export(
    context: typer.Context,
    *,
    file: Annotated[Path, typer.Option(metavar="FILE", help="The CSV file to write.")],
    operator: Operator = None,
    action: Action = None,
    producer_group: Group = None,
    topic: Topic = None,
    transaction_id: Transaction = None,
    message_id: MessageId = None,
    key_id: KeyId = None,
    at_from: AtFrom = None,
    at_to: AtTo = None,
    max_items: Annotated[
        int, typer.Option(metavar="COUNT", min=1, help="Fail if more entries match.")
    ] = 100_000,
) -> None:
    """Write all interventions that match as CSV; no cell is a formula of a spreadsheet."""
    with api_client(context) as api:
        filters = {k: v for k, v in context.params.items() if k not in NO_FILTERS}
        rows = at_most(api.rows(ROOT, filters), max_items, TOO_MANY)
    lines = [csv_line(COLUMNS), *(csv_line([row[name] for name in COLUMNS]) for row in rows)]
    try:
        file.write_text("".join(lines), "utf-8", newline="")
    except OSError as error:
        raise CommandFailed(f"cannot write {file}: {error.strerror}", ExitCode.USAGE) from None
    print_object(context_of(context), {"file": str(file), "entries": len(rows)})
