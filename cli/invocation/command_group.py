"""A group of commands below `outbox`."""

from collections.abc import Callable, Mapping
from typing import Any

import typer


def command_group(summary: str, commands: Mapping[str, Callable[..., Any]]) -> typer.Typer:
    """Return the group of these commands, by name; without a command it shows its help."""
    app = typer.Typer(help=summary, no_args_is_help=True)
    app.callback()(lambda: None)
    for name, command in commands.items():
        app.command(name)(command)
    return app
