"""`outbox config`: shows every setting with its source."""

import typer
from pydantic import SecretStr

from cli.invocation.context import context_of
from cli.invocation.output import print_rows
from outbox.settings.catalogue import SECRETS
from outbox.settings.environment import gather, load_settings, process_environment


def make_app() -> typer.Typer:
    """Build the command group."""
    app = typer.Typer(help="Configuration.", no_args_is_help=True)
    app.callback()(lambda: None)
    app.command("show")(show)
    return app


def show(context: typer.Context) -> None:
    """Print each setting, its value (secrets redacted) and its source."""
    settings = load_settings()
    _, origin = gather(process_environment())
    rows = [
        {
            "setting": f"OUTBOX_{name.upper()}",
            "value": _shown(name, value),
            "source": origin.get(name, "default"),
        }
        for name, value in settings
    ]
    print_rows(context_of(context), rows, ("setting", "value", "source"))


def _shown(name: str, value: object) -> object:
    if value is None:
        return None
    if name in SECRETS or isinstance(value, SecretStr):
        return "(secret)" if value else value
    return list(value) if isinstance(value, tuple) else value if _plain(value) else str(value)


def _plain(value: object) -> bool:
    return isinstance(value, str | int | float | bool | dict)
