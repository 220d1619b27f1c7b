"""Entry of `outbox`: never a traceback, always the documented exit code."""

import sys
from collections.abc import Sequence

import click

from cli.app import make_app
from cli.embedded.errors import ArtifactsMissing, EmbeddedError
from cli.exit_codes import CommandFailed, ExitCode
from cli.global_flags import hoisted
from cli.version import installed_version
from outbox.errors import ConfigurationError, DatabaseUnavailable, KafkaUnavailable, OutboxError


def main() -> None:
    """Run the command with this process's arguments and exit."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run the command; return its exit code."""
    arguments = hoisted(arguments)
    if "--version" in arguments:
        print(installed_version())
        return ExitCode.OK
    try:
        code = make_app()(list(arguments), prog_name="outbox", standalone_mode=False)
    except (click.ClickException, click.Abort, KeyboardInterrupt) as error:
        return _usage(error)
    except (CommandFailed, EmbeddedError, OutboxError) as error:
        print(f"outbox: {error}", file=sys.stderr)
        return exit_code_of(error)
    return int(code or 0)


def exit_code_of(error: Exception) -> ExitCode:
    """Return the exit code of an error of ours."""
    match error:
        case CommandFailed():
            return error.exit_code
        case ConfigurationError() | ArtifactsMissing():
            return ExitCode.USAGE
        case DatabaseUnavailable() | KafkaUnavailable():
            return ExitCode.UNREACHABLE
        case _:
            return ExitCode.ERROR


def _usage(error: BaseException) -> int:
    if isinstance(error, click.ClickException):
        error.show()
        return error.exit_code
    return ExitCode.INTERRUPTED


if __name__ == "__main__":
    main()
