"""`outbox audit`: who intervened in what, and why."""

from collections.abc import Iterator
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from cli.invocation.context import context_of
from cli.invocation.exit_codes import CommandFailed, ExitCode
from cli.invocation.output import print_object, print_rows
from cli.service.api_client import ApiClient, api_client
from outbox.operators.csv_line import csv_line

ROOT: Final = "/v1/audit-log"
COLUMNS: Final = ("at", "action", "target", "operator", "reason", "key_id", "detail")
EXPORT_PAGE: Final = 500
NO_FILTERS: Final = ("context", "limit", "cursor", "file", "max_items")

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
    app = typer.Typer(
        help="Show and export the audit log: who intervened in what, and why.", no_args_is_help=True
    )
    app.command("list")(list_entries)
    app.command("export")(export)
    return app


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
    limit: Annotated[
        int | None, typer.Option(metavar="COUNT", min=1, max=500, help="Entries on a page.")
    ] = None,
    cursor: Annotated[str | None, typer.Option(help="Continue where the last page ended.")] = None,
) -> None:
    """List interventions, newest first."""
    with api_client(context) as api:
        page = api.get(ROOT, {**_filters(context), "limit": limit, "cursor": cursor})
    invocation = context_of(context)
    print_rows(invocation, page["data"], COLUMNS, page, none="no intervention matches")
    invocation.say_more(page)


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
        rows = list(_entries(api, _filters(context), max_items))
    lines = [csv_line(COLUMNS), *(csv_line([row[name] for name in COLUMNS]) for row in rows)]
    try:
        file.write_text("".join(lines), "utf-8", newline="")
    except OSError as error:
        raise CommandFailed(f"cannot write {file}: {error.strerror}", ExitCode.USAGE) from None
    print_object(context_of(context), {"file": str(file), "entries": len(rows)})


def _filters(context: typer.Context) -> dict[str, Any]:
    """Return the filters that were given, by the names of the API."""
    names = [name for name in signature(list_entries).parameters if name not in NO_FILTERS]
    return {name: context.params[name] for name in names}


def _entries(api: ApiClient, filters: dict[str, Any], most: int) -> Iterator[dict[str, Any]]:
    """Yield what matches, page by page. Raises CommandFailed if it is more than ``most``."""
    found, cursor = 0, None
    while True:
        page = api.get(ROOT, {**filters, "limit": EXPORT_PAGE, "cursor": cursor})
        found += len(page["data"])
        if found > most:
            raise CommandFailed(
                f"more than {most} entries match: give narrower filters, or raise --max-items",
                ExitCode.USAGE,
            )
        yield from page["data"]
        cursor = page["next_cursor"]
        if cursor is None:
            return
