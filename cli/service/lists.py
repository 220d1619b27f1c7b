"""Lists of the API: one page of them on stdout, or all rows up to a number."""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Annotated, Any

import typer

from cli.invocation.context import context_of
from cli.invocation.exit_codes import CommandFailed, ExitCode
from cli.invocation.output import print_rows
from cli.service.api_client import api_client

Limit = Annotated[int | None, typer.Option(metavar="COUNT", min=1, max=500, help="Rows on a page.")]
Cursor = Annotated[str | None, typer.Option(help="Continue where the last page ended.")]


def print_page(context: typer.Context, path: str, columns: Sequence[str], *, none: str) -> None:
    """Print the page of a list that the command's options ask for; `none` is said of no rows."""
    with api_client(context) as api:
        page = api.get(path, context.params)
    print_rows(context_of(context), page["data"], columns, page, none=none)
    context_of(context).say_more(page)


def print_list(context: typer.Context, path: str, columns: Sequence[str], *, none: str) -> None:
    """Print all rows of a list; `none` is said of no rows."""
    with api_client(context) as api:
        rows = list(api.rows(path))
    body = {"data": rows, "next_cursor": None, "has_more": False}
    print_rows(context_of(context), rows, columns, body, none=none)


def at_most(found: Iterable[dict[str, Any]], most: int, what: str) -> list[dict[str, Any]]:
    """Return the rows. Raises CommandFailed when there are more than ``most``."""
    rows = list(islice(found, most + 1))
    if len(rows) > most:
        raise CommandFailed(f"more than {most} {what}", ExitCode.USAGE)
    return rows
