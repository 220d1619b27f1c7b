"""Prints data on stdout: text for people, JSON or JSON lines for programs."""

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from typing import Any, Final

from cli.invocation.context import Context, Output

Row = Mapping[str, Any]

SHOWN_ONCE: Final = ("api_key", "check_secret")
"""Members that the service shows only in this answer."""
_MOMENT: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?(Z|[+-]\d\d:\d\d)")


def printable(text: str) -> str:
    """Return a text without what a terminal would obey, and without bytes that are no text."""
    return "".join(each if each.isprintable() or each == "\n" else "\ufffd" for each in text)


def print_object(invocation: Context, body: Row) -> None:
    """Print one object: one line per member, or the body as JSON.

    Nothing is cut off or wrapped. A secret that is shown once is the last line.
    """
    if invocation.output is not Output.TABLE:
        print(_json(body, invocation.output))
        return
    secrets = {name: body[name] for name in SHOWN_ONCE if body.get(name)}
    lines = {name: value for name, value in body.items() if name not in secrets}
    width = max(map(len, lines), default=0)
    for name, value in lines.items():
        print(f"{name:<{width}}  {_cell(value)}")
    for name, value in secrets.items():
        print(f"\n{name}, shown only now:\n{value}")


def print_rows(
    invocation: Context,
    rows: Sequence[Row],
    columns: Sequence[str],
    body: Any = None,
    *,
    none: str = "nothing to show",
) -> None:
    """Print a list: a table of `columns`, one JSON line per row, or the whole `body` as JSON.

    The first column names the row. In place of a table without rows `none` is said.
    """
    if invocation.output is Output.JSON:
        print(_json(rows if body is None else body, Output.JSON))
    elif invocation.output is Output.JSONL:
        for row in rows:
            print(_json(row, Output.JSONL))
    elif not rows:
        invocation.say(none)
    else:
        cells = [[_cell(row.get(column)) for column in columns] for row in rows]
        _print_table(invocation, columns, cells)


def _print_table(
    invocation: Context, columns: Sequence[str], cells: Sequence[Sequence[str]]
) -> None:
    """Print aligned columns, or a block per row on a terminal that is narrower than they are.

    Nothing is cut off or wrapped: an id can be copied.
    """
    heads = [name.replace("_", " ") for name in columns]
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in (heads, *cells)]
    terminal = shutil.get_terminal_size((0, 0)).columns
    if 0 < terminal < max(map(len, lines)):
        _print_blocks(invocation, heads, cells)
        return
    _print_head(invocation, lines[0])
    for line in lines[1:]:
        print(line)


def _print_blocks(
    invocation: Context, heads: Sequence[str], cells: Sequence[Sequence[str]]
) -> None:
    """Print the first value of each row, and indented below it the others with their names."""
    width = max(map(len, heads[1:]))
    for first, *others in cells:
        _print_head(invocation, first)
        for name, value in zip(heads[1:], others, strict=True):
            print(f"  {name:<{width}}  {value}")


def _print_head(invocation: Context, text: str) -> None:
    print(f"\x1b[1m{text}\x1b[0m" if invocation.color else text)


def _json(value: Any, output: Output) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2 if output is Output.JSON else None)


def _cell(value: Any) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case dict():
            return ", ".join(f"{name} {_cell(each)}" for name, each in value.items()) or "-"
        case list():
            return ", ".join(map(_cell, value)) or "-"
        case _:
            return _MOMENT.sub(_moment, str(value))


def _moment(found: re.Match[str]) -> str:
    at, zone = found.groups()
    return f"{at}{'Z' if zone == '+00:00' else zone}"
