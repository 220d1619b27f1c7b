"""The `outbox` command: global flags and the commands below them."""

import sys
from importlib.metadata import entry_points
from typing import Annotated

import typer

from cli.commands import audit, config, group, held, installation, key, migrate, shard
from cli.commands.bench.command import bench
from cli.commands.check import command as check
from cli.commands.doctor.command import doctor
from cli.commands.message import command as message
from cli.commands.reconcile import command as reconcile
from cli.commands.status import status
from cli.dev.command import dev
from cli.invocation.context import Context, Output
from cli.invocation.examples import add_examples
from cli.service.programs import api, checker

DEFAULT_TIMEOUT_SECONDS = 30.0
EXTENSIONS = "outbox.commands"
"""Entry points of distributions that add a command group, such as ``outbox-chaos``."""


EPILOG = """Example: outbox -o json message list --group orders

The API key comes from OUTBOX_API_KEY, or from the file that OUTBOX_API_KEY_FILE names.

Exit codes: 0 ok, 1 error, 2 usage or configuration, 3 not found, 4 key refused or scope missing, 5
conflict, 6 unreachable or timeout, 7 findings of an audit, 8 inconclusive audit, 130 Ctrl-C.
"""


def make_app() -> typer.Typer:
    """Build the command with all its groups."""
    app = typer.Typer(
        name="outbox",
        epilog=EPILOG,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(root)
    app.command("dev")(dev)
    app.command("api")(api)
    app.command("checker")(checker)
    app.add_typer(migrate.make_app(), name="migrate")
    app.add_typer(reconcile.make_app(), name="reconcile")
    app.add_typer(message.make_app(), name="message")
    app.add_typer(group.make_app(), name="group")
    app.add_typer(key.make_app(), name="key")
    app.add_typer(check.make_app(), name="check")
    app.command("status")(status)
    app.add_typer(shard.make_app(), name="shard")
    app.add_typer(held.make_app(), name="held")
    app.add_typer(audit.make_app(), name="audit")
    app.add_typer(installation.make_app(), name="installation")
    app.command("doctor")(doctor)
    app.command("bench")(bench)
    app.add_typer(config.make_app(), name="config")
    for command in entry_points(group=EXTENSIONS):
        app.add_typer(command.load()(), name=command.name)
    add_examples(app)
    return app


def root(
    context: typer.Context,
    *,
    output: Annotated[
        Output | None,
        typer.Option(
            "-o",
            "--output",
            help="Form of the data.",
            show_default="table on a terminal, else json",
        ),
    ] = None,
    url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Address of the API.",
            show_default="OUTBOX_API_URL, else the `outbox dev` of this folder",
        ),
    ] = None,
    timeout: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0.1, max=86_400, help="Time limit of one request."),
    ] = DEFAULT_TIMEOUT_SECONDS,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print no progress on stderr.")] = False,
    no_color: Annotated[
        bool, typer.Option("--no-color", envvar="NO_COLOR", help="Print no colours.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Answer every question with yes.")] = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Half messages for Kafka: prepared, decided once, published exactly once."""
    default = Output.TABLE if sys.stdout.isatty() else Output.JSON
    context.obj = Context(
        output=output or default,
        url=url,
        timeout_seconds=timeout,
        quiet=quiet,
        color=not no_color and sys.stdout.isatty(),
        yes=yes,
    )
