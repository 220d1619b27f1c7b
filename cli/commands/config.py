"""`outbox config`: shows every setting with its source."""

import typer
from pydantic import SecretStr

from cli.invocation.context import context_of
from cli.invocation.output import print_rows
from outbox.settings.catalogue import SECRETS
from outbox.settings.environment import gather, load_settings, process_environment
from outbox.settings.secret_texts import names_a_secret, secret_texts
from outbox.telemetry.redaction import HIDDEN, Redaction, redaction


def make_app() -> typer.Typer:
    """Build the command group."""
    app = typer.Typer(help="Configuration.", no_args_is_help=True)
    app.callback()(lambda: None)
    app.command("show")(show)
    return app


def show(context: typer.Context) -> None:
    """Print each setting, its value (secrets redacted) and its source."""
    settings = load_settings()
    redact = redaction(secret_texts(settings))
    _, origin = gather(process_environment())
    rows = [
        {
            "setting": f"OUTBOX_{name.upper()}",
            "value": _shown(name, value, redact),
            "source": origin.get(name, "default"),
        }
        for name, value in settings
    ]
    print_rows(context_of(context), rows, ("setting", "value", "source"))


def _shown(name: str, value: object, redact: Redaction) -> object:
    if name in SECRETS or isinstance(value, SecretStr):
        return HIDDEN if value else value
    if isinstance(value, tuple | list):
        return [redact(str(each)) for each in value]
    if isinstance(value, dict):
        return {key: _property(key, each, redact) for key, each in value.items()}
    return value if value is None or isinstance(value, int | float) else redact(str(value))


def _property(name: str, value: object, redact: Redaction) -> object:
    hidden = isinstance(value, str) and names_a_secret(name)
    return HIDDEN if hidden else _shown("", value, redact)
