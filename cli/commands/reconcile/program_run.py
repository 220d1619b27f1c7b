"""`outbox reconcile run`: becomes the program that audits, which has the options."""

from typing import Annotated, Final

import typer

from cli.service.programs import become_reconcile

RunId = Annotated[
    str, typer.Argument(metavar="RUN_ID", help="As `outbox reconcile list` shows it.")
]
PASSED_ON: Final = {"allow_extra_args": True, "ignore_unknown_options": True}
"""How a command takes every word, `--help` too."""


def run(context: typer.Context) -> None:
    """Audit both stores up to one consistent cut; the exit code follows the verdict."""
    become_reconcile(context, "run", *context.args)
