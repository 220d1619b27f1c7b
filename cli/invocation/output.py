"""Prints data on stdout: a table for people, JSON or JSON lines for programs."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from cli.invocation.context import Context, Output

Row = Mapping[str, Any]


def print_object(invocation: Context, body: Row) -> None:
    """Print one object: a table with one line per member, or the body as JSON."""
    if invocation.output is not Output.TABLE:
        print(_json(body, invocation.output))
        return
    table = Table(show_header=False, box=None, pad_edge=False)
    for name, value in body.items():
        table.add_row(name, _cell(value))
    _console(invocation).print(table)


def print_rows(
    invocation: Context, rows: Sequence[Row], columns: Sequence[str], body: Any = None
) -> None:
    """Print a list: a table of `columns`, one JSON line per row, or the whole `body` as JSON."""
    if invocation.output is Output.JSON:
        print(_json(rows if body is None else body, Output.JSON))
    elif invocation.output is Output.JSONL:
        for row in rows:
            print(_json(row, Output.JSONL))
    else:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for column in columns:
            table.add_column(column.replace("_", " "), overflow="fold")
        for row in rows:
            table.add_row(*(_cell(row.get(column)) for column in columns))
        _console(invocation).print(table)


def _json(value: Any, output: Output) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2 if output is Output.JSON else None)


def _cell(value: Any) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case dict() | list():
            return json.dumps(value, ensure_ascii=False) if value else "-"
        case _:
            return str(value)


def _console(invocation: Context) -> Console:
    return Console(no_color=not invocation.color, highlight=False, markup=False, emoji=False)
