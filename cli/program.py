"""A program of the command line: every error becomes one line and a documented exit code."""

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from cli.invocation.exit_codes import CommandFailed, ExitCode
from cli.invocation.global_flags import wants_json
from cli.invocation.interrupts import end_at_interrupts, raise_interrupts
from cli.invocation.standard_output import replace_closed_streams, written_out
from cli.service.api_problem import ApiProblem
from cli.service.login_problem import NEXT_STEP, lacking_right
from devservers.errors import ArtifactsMissing, EmbeddedError
from outbox.errors import (
    ConfigurationError,
    DatabaseUnavailable,
    KafkaUnavailable,
    OutboxError,
    SchemaBehind,
)

if TYPE_CHECKING:
    import typer

Call = Callable[[Sequence[str]], int]


def run_process(run: Call) -> NoReturn:
    """Run a program with this process's arguments and exit."""
    replace_closed_streams()
    code = run(sys.argv[1:])
    end_at_interrupts()
    sys.exit(written_out(code))


def run_program(name: str, call: Call, arguments: Sequence[str]) -> int:
    """Call a program; print an error as one line on stderr. Return the exit code."""
    try:
        return call(arguments)
    except KeyboardInterrupt:
        return _failed(f"{name}: interrupted", ExitCode.INTERRUPTED)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else ExitCode.OK
    except BrokenPipeError:
        return ExitCode.ERROR  # the output has no reader any more
    except Exception as error:
        line = line_of(error, name, as_json=wants_json(arguments))
        return _failed(_redacted(line), exit_code_of(error))


def call_app(name: str, app: "typer.Typer", arguments: Sequence[str]) -> int:
    """Call a command of an app. Raises CommandFailed for words that it does not take."""
    from typer import Abort, TyperException
    from typer.main import get_command

    from cli.invocation.usage_errors import usage_error

    command = get_command(app)
    raise_interrupts()
    try:
        code = command.main(list(arguments), prog_name=name, standalone_mode=False)
    except TyperException as error:
        raise usage_error(error) from None
    except Abort:
        raise CommandFailed("not confirmed: nothing was done") from None
    if code == ExitCode.INTERRUPTED:
        raise KeyboardInterrupt
    return code if isinstance(code, int) else ExitCode.OK


def exit_code_of(error: Exception) -> ExitCode:
    """Return the exit code of an error."""
    match error:
        case CommandFailed() | ApiProblem():
            return error.exit_code
        case _ if lacking_right(error):
            return ExitCode.USAGE
        case ConfigurationError() | ArtifactsMissing():
            return ExitCode.USAGE
        case DatabaseUnavailable() | KafkaUnavailable():
            return ExitCode.UNREACHABLE
        case _:
            return ExitCode.ERROR


def line_of(error: Exception, name: str = "outbox", *, as_json: bool = False) -> str:
    """Return an error as one line, or as a problem document with ``as_json``."""
    match error:
        case SchemaBehind():
            return f"{name}: {error}: run `outbox migrate up`"
        case _ if refused := lacking_right(error):
            return f"{name}: {refused}: {NEXT_STEP}"
        case ApiProblem():
            return error.as_json() if as_json else f"{name}: {error.as_text()}"
        case CommandFailed() | EmbeddedError() | OutboxError():
            return f"{name}: {error}"
        case OSError(strerror=str(reason)):
            return f"{name}: {f'{error.filename}: ' if error.filename else ''}{reason}"
        case OSError():
            return f"{name}: {error}"
        case _:
            first = next(iter(str(error).splitlines()), "")
            return f"{name}: internal error: {type(error).__name__}: {first}"


def _failed(line: str, code: ExitCode) -> ExitCode:
    """Print why a program failed, if somebody can read it; return its exit code."""
    with suppress(OSError):
        print(line, file=sys.stderr, flush=True)
    return code


def _redacted(line: str) -> str:
    """Return a line without the secrets of the settings, also when these cannot be read."""
    from outbox.settings.environment import load_settings
    from outbox.settings.secret_texts import secret_texts
    from outbox.telemetry.redaction import redaction

    try:
        secrets = secret_texts(load_settings())
    except (ConfigurationError, OSError, ValueError):
        secrets = frozenset()
    return redaction(secrets)(line)
