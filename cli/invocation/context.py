"""The values of the global flags, for every command."""

import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, cast

import typer

from cli.invocation.exit_codes import CommandFailed


class Output(StrEnum):
    """How a command prints its data."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The global flags of one call."""

    output: Output
    url: str | None
    timeout_seconds: float
    quiet: bool
    color: bool
    yes: bool

    def say(self, line: str) -> None:
        """Print a line of progress on stderr, unless `--quiet` was given."""
        if not self.quiet:
            with suppress(OSError):  # no reader any more: the work goes on
                typer.echo(line, err=True)

    def say_more(self, page: Mapping[str, Any]) -> None:
        """Name the flag that continues a list after this page."""
        if page.get("has_more"):
            self.say(f"more: --cursor {page['next_cursor']}")

    def confirm(self, question: str) -> None:
        """Ask a person on a terminal before a change that cannot be undone; `--yes` skips it."""
        if self.yes or not sys.stdin.isatty():
            return
        typer.echo(f"{question} [y/N]: ", err=True, nl=False)
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise CommandFailed("not confirmed: nothing was done")


def context_of(context: typer.Context) -> Context:
    """Return the flags that the root command read."""
    return cast(Context, context.find_root().obj)
