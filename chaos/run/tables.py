"""Replaces a table that a command has written into a page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cli.invocation.exit_codes import CommandFailed


def replace_table(path: Path, begin: str, end: str, lines: Sequence[str]) -> None:
    """Replace what stands between two comments of a page.

    Raises CommandFailed if the page lacks one of them.
    """
    before, found, rest = path.read_text("utf-8").partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise CommandFailed(f"{path} has no place for its table: {begin} … {end}")
    path.write_text("\n".join([before + begin, "", *lines, "", end + after]), "utf-8")
