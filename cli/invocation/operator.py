"""Who acts, and why: the options of audited actions, and the name of the operator."""

import getpass
from typing import Annotated

import typer

from cli.invocation.exit_codes import CommandFailed, ExitCode
from outbox.operators.message_view import OperatorAction

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


def who_and_why(operator: str | None, reason: str) -> dict[str, str]:
    """Return the members of a request that is audited."""
    return {"operator": operator or operator_name(), "reason": reason}


def operator_action(operator: str | None, reason: str) -> OperatorAction:
    """Return what the audit log keeps of a change in the database. Raises CommandFailed."""
    if not reason.strip():
        raise CommandFailed("--reason must not be empty", ExitCode.USAGE)
    return OperatorAction(operator=operator or operator_name(), reason=reason, key_id=None)
