"""`outbox reconcile run` and `rerun`: they become the program that audits; it has the options."""

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


def rerun(context: typer.Context) -> None:
    """Check the open findings of a run again; this takes as long as the next run."""
    become_reconcile(context, "rerun", *context.args)
