"""Who acts, and why: the options of audited actions, and the name of the operator."""

import getpass
from typing import Annotated

import typer

Reason = Annotated[str, typer.Option(metavar="TEXT", help="Reason, kept in the audit log.")]
Operator = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Who acts, for the audit log.", show_default="the OS user"),
]


def operator_name() -> str:
    """Return the operating system's user name, or `unknown` without one."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "unknown"
