"""`outbox installation`: who this database's relays are to Kafka; from the database."""

from typing import Annotated

import typer

from cli.context import context_of
from cli.exit_codes import CommandFailed, ExitCode
from cli.operator import operator_name
from cli.output import print_object
from cli.stores.database import database_url
from outbox.errors import ShardsHeld
from outbox.operators.message_view import OperatorAction

QUESTION = "Is this database a copy, to be another installation than its original from now on?"


def make_app() -> typer.Typer:
    """Put the group together."""
    app = typer.Typer(help="Who this database is to Kafka.", no_args_is_help=True)
    app.callback()(_group)
    app.command("renew")(renew)
    return app


def _group() -> None:
    """Who this database is to Kafka."""


def renew(
    context: typer.Context,
    *,
    reason: Annotated[str, typer.Option(help="Why; kept in the audit log.")],
) -> None:
    """Give a copied database an installation id of its own; every shard then waits halted."""
    from outbox.postgres.operators.installation_admin import renew_installation

    if not reason.strip():
        raise CommandFailed("--reason must say why", ExitCode.USAGE)
    invocation = context_of(context)
    invocation.confirm(QUESTION)
    action = OperatorAction(operator=operator_name(), reason=reason, key_id=None)
    try:
        renewed = renew_installation(database_url(), action)
    except ShardsHeld as error:
        raise CommandFailed(f"{error}: stop the checkers first", ExitCode.CONFLICT) from None
    print_object(invocation, {"was": str(renewed.was), "installation": str(renewed.now)})
    invocation.say("give it a Kafka cluster of its own, then: outbox shard resolve SHARD --accept")
