"""Entry of `outbox`: every error becomes one line and a documented exit code."""

import sys
from collections.abc import Sequence

from cli.invocation.exit_codes import CommandFailed, ExitCode
from cli.invocation.global_flags import hoist_global_flags, wants_json
from cli.invocation.standard_output import replace_closed_output, written_out
from cli.service.api_problem import ApiProblem
from cli.service.schema_problem import lacking_in_schema
from devservers.errors import ArtifactsMissing, EmbeddedError
from outbox.errors import ConfigurationError, DatabaseUnavailable, KafkaUnavailable, OutboxError


def main() -> None:
    """Run the command with this process's arguments and exit."""
    replace_closed_output()
    try:
        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        code = ExitCode.INTERRUPTED
    sys.exit(written_out(code))


def run(arguments: Sequence[str]) -> int:
    """Run the command; return its exit code."""
    arguments = hoist_global_flags(arguments)
    try:
        _call(arguments)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else ExitCode.OK
    except BrokenPipeError:
        return ExitCode.ERROR  # nobody reads the output any more
    except Exception as error:
        print(_redacted(line_of(error, as_json=wants_json(arguments))), file=sys.stderr)
        return exit_code_of(error)
    return ExitCode.OK


def _call(arguments: Sequence[str]) -> None:
    """Import and call the command; an interrupt during the imports comes here, too."""
    if "--version" in arguments:
        from outbox.telemetry.version import installed_version

        print(installed_version())
        return
    from cli.app import make_app

    make_app()(arguments, prog_name="outbox")


def _redacted(line: str) -> str:
    """Return a line without the secrets of the settings, also when these cannot be read."""
    from outbox.settings.environment import load_settings
    from outbox.settings.secret_texts import secret_texts
    from outbox.telemetry.redaction import redaction

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
        case DatabaseUnavailable() if lacking := lacking_in_schema(error):
            return f"outbox: {lacking}: run `outbox migrate up`"
        case ApiProblem():
            return error.as_json() if as_json else f"outbox: {error.as_text()}"
        case CommandFailed() | EmbeddedError() | OutboxError():
            return f"outbox: {error}"
        case OSError(strerror=str(reason)):
            return f"outbox: {f'{error.filename}: ' if error.filename else ''}{reason}"
        case OSError():
            return f"outbox: {error}"
        case _:
            first = next(iter(str(error).splitlines()), "")
            return f"outbox: internal error: {type(error).__name__}: {first}"


if __name__ == "__main__":
    main()
