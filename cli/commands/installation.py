"""`outbox installation`: the identity of this database's relays in Kafka.

Reads and writes the database directly.
"""

from typing import Annotated

import typer

from cli.invocation.context import context_of
from cli.invocation.exit_codes import CommandFailed, ExitCode
from cli.invocation.operator import operator_name
from cli.invocation.output import print_object
from cli.invocation.settings import database_url
from outbox.errors import ShardsHeld
from outbox.operators.message_view import OperatorAction

QUESTION = "Is this database a copy that becomes an installation of its own from now on?"


def make_app() -> typer.Typer:
    """Build the command group."""
    app = typer.Typer(help="The identity of this database in Kafka.", no_args_is_help=True)
    app.callback()(_group)
    app.command("renew")(renew)
    return app


def _group() -> None:
    """The identity of this database in Kafka."""


def renew(
    context: typer.Context,
    *,
    reason: Annotated[str, typer.Option(help="Reason, kept in the audit log.")],
) -> None:
    """Give a copied database a new installation id; every shard is halted afterwards."""
    from outbox.postgres.operators.installation_admin import renew_installation

    if not reason.strip():
        raise CommandFailed("--reason must not be empty", ExitCode.USAGE)
    invocation = context_of(context)
    invocation.confirm(QUESTION)
    action = OperatorAction(operator=operator_name(), reason=reason, key_id=None)
    try:
        renewed = renew_installation(database_url(), action)
    except ShardsHeld as error:
        raise CommandFailed(f"{error}: stop the checkers first", ExitCode.CONFLICT) from None
    print_object(invocation, {"was": str(renewed.was), "installation": str(renewed.now)})
    invocation.say(
        "give the copy its own Kafka cluster, then run: outbox shard resolve SHARD --accept"
    )
