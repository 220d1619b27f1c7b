"""Words that a command does not take: one line that says what is wrong and where the help is."""

import sys
from typing import Any

from typer import TyperException

from cli.invocation.exit_codes import CommandFailed, ExitCode
from cli.invocation.output import printable


def usage_error(error: TyperException) -> CommandFailed:
    """Return the error in one line. A group without a command shows its help and exits."""
    context: Any = getattr(error, "ctx", None)
    if context is not None and error.message == context.get_help():
        print(error.message, file=sys.stderr)
        sys.exit(ExitCode.USAGE)
    said = " ".join(error.format_message().split())
    said = printable(said).replace("Value error, ", "").rstrip(".")
    command = context.command_path if context is not None else "outbox"
    line = f"{said[:1].lower()}{said[1:]} (see `{command} --help`)"
    return CommandFailed(line, ExitCode.USAGE)
