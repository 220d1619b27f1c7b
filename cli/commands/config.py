"""`outbox config`: shows every setting with its source."""

from dataclasses import asdict

import typer

from cli.invocation.command_group import command_group
from cli.invocation.context import context_of
from cli.invocation.output import print_rows
from outbox.operators.shown_settings import shown_settings
from outbox.settings.environment import gather, load_settings, process_environment


def make_app() -> typer.Typer:
    """Build the command group."""
    return command_group(
        "Show the settings.",
        {
            "show": show,
        },
    )


def show(context: typer.Context) -> None:
    """Print each setting, its value (secrets redacted) and its source."""
    _, origin = gather(process_environment())
    rows = [asdict(each) for each in shown_settings(load_settings(), origin)]
    print_rows(context_of(context), rows, ("setting", "value", "source"))
