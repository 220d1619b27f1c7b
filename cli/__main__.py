"""Entry of `outbox`: every error becomes one line and a documented exit code."""

import sys
from collections.abc import Sequence

from cli.app import make_app
from cli.invocation.exit_codes import CommandFailed, ExitCode
from cli.invocation.global_flags import hoist_global_flags, wants_json
from cli.service.api_problem import ApiProblem
from devservers.errors import ArtifactsMissing, EmbeddedError
from outbox.errors import ConfigurationError, DatabaseUnavailable, KafkaUnavailable, OutboxError
from outbox.settings.environment import load_settings
from outbox.settings.secret_texts import secret_texts
from outbox.telemetry.redaction import redaction
from outbox.telemetry.version import installed_version


def main() -> None:
    """Run the command with this process's arguments and exit."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run the command; return its exit code."""
    arguments = hoist_global_flags(arguments)
    if "--version" in arguments:
        print(installed_version())
        return ExitCode.OK
    try:
        make_app()(arguments, prog_name="outbox")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else ExitCode.OK
    except Exception as error:
        print(_redacted(line_of(error, as_json=wants_json(arguments))), file=sys.stderr)
        return exit_code_of(error)
    return ExitCode.OK


def _redacted(line: str) -> str:
    """Return a line without the secrets of the settings, also when these cannot be read."""
    try:
        secrets = secret_texts(load_settings())
    except ConfigurationError:
        secrets = frozenset()
    return redaction(secrets)(line)


def exit_code_of(error: Exception) -> ExitCode:
    """Return the exit code of an error."""
    match error:
        case CommandFailed() | ApiProblem():
            return error.exit_code
        case ConfigurationError() | ArtifactsMissing():
            return ExitCode.USAGE
        case DatabaseUnavailable() | KafkaUnavailable():
            return ExitCode.UNREACHABLE
        case _:
            return ExitCode.ERROR


def line_of(error: Exception, *, as_json: bool = False) -> str:
    """Return an error as one line, or as a problem document with ``as_json``."""
    match error:
        case ApiProblem():
            return error.as_json() if as_json else f"outbox: {error.as_text()}"
        case CommandFailed() | EmbeddedError() | OutboxError() | OSError():
            return f"outbox: {error}"
        case _:
            first = next(iter(str(error).splitlines()), "")
            return f"outbox: internal error: {type(error).__name__}: {first}"


if __name__ == "__main__":
    main()
