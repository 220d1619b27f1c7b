"""Prints data on stdout: text for people, JSON or JSON lines for programs."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from cli.invocation.context import Context, Output

Row = Mapping[str, Any]

SHOWN_ONCE: Final = ("api_key", "check_secret")
"""Members that the service shows only in this answer."""
IDS: Final = ("message_id", "key_id", "run_id", "finding_id", "target", "check")
"""Columns that are copied into the next command or a search, so they are never wrapped."""
TEXT: Final = 36
"""A longer cell is a text, which may be folded."""
GAP: Final = 2
_MOMENT: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?(Z|[+-]\d\d:\d\d)")


def printable(text: str) -> str:
    """Return a text without what a terminal would obey, and without bytes that are no text."""
    return "".join(each if each.isprintable() or each == "\n" else "\ufffd" for each in text)


def print_object(invocation: Context, body: Row) -> None:
    """Print one object: one line per member, or the body as JSON.

    Nothing is cut off or wrapped. A secret that is shown once stands alone on the last line.
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

    In place of a table without rows `none` is said.
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
    """Print a table whose words stay whole.

    Only long texts are folded. Where the terminal is too narrow for that, the lines are longer than
    it and it folds them itself, so that an id can be copied.
    """
    console = _console(invocation)
    longest = [max((len(row[at]) for row in cells), default=0) for at in range(len(columns))]
    folds = [width > TEXT and name not in IDS for name, width in zip(columns, longest, strict=True)]
    least = [TEXT if is_text else width for is_text, width in zip(folds, longest, strict=True)]
    heads = [name.replace("_", " ") for name in columns]
    if _table_width(heads, least) > console.width:
        heads = [head.replace(" ", "\n") for head in heads]
    console.width = max(console.width, _table_width(heads, least))
    table = Table(box=None, pad_edge=False, header_style="bold")
    for head, is_text in zip(heads, folds, strict=True):
        table.add_column(head, overflow="fold", no_wrap=not is_text)
    for row in cells:
        table.add_row(*row)
    console.print(table)


def _table_width(heads: Sequence[str], least: Sequence[int]) -> int:
    """Return the width of a table whose columns are as narrow as they may be."""
    widths = zip(heads, least, strict=True)
    return sum(max(width, *map(len, head.split("\n"))) + GAP for head, width in widths)


def _json(value: Any, output: Output) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2 if output is Output.JSON else None)


def _cell(value: Any) -> str:
    match value:
        case None | []:
            return "-"
        case bool():
            return "yes" if value else "no"
        case dict():
            if not value:
                return "-"
            return ", ".join(f"{name} {_cell(each)}" for name, each in value.items())
        case list():
            return ", ".join(_cell(each) for each in value)
        case _:
            return _MOMENT.sub(_moment, str(value))


def _moment(found: re.Match[str]) -> str:
    at, zone = found.groups()
    return f"{at}{'Z' if zone == '+00:00' else zone}"


def _console(invocation: Context) -> Console:
    return Console(no_color=not invocation.color, highlight=False, markup=False, emoji=False)
