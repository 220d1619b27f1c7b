"""`outbox installation`: the identity of this database's relays in Kafka.

Reads and writes the database directly.
"""

import typer

from cli.invocation.command_group import command_group
from cli.invocation.context import context_of
from cli.invocation.exit_codes import CommandFailed, ExitCode
from cli.invocation.operator import Operator, Reason, operator_action
from cli.invocation.output import print_object
from cli.invocation.settings import database_url
from outbox.errors import SessionsOpen

RENEW_QUESTION = "Is this database a copy that becomes an installation of its own from now on?"
REBASE_QUESTION = "Was this database restored, and is every API and checker of it stopped?"


def make_app() -> typer.Typer:
    """Build the command group."""
    return command_group(
        "Repair the identity and the ids of a copied or restored database.",
        {
            "renew": renew,
            "rebase": rebase,
        },
    )


def renew(context: typer.Context, *, reason: Reason, operator: Operator = None) -> None:
    """Give a copied database a new installation id; every shard is halted afterwards."""
    from outbox.postgres.operators.installation_admin import renew_installation

    invocation, action = context_of(context), operator_action(operator, reason)
    invocation.confirm(RENEW_QUESTION)
    try:
        renewed = renew_installation(database_url(), action)
    except SessionsOpen as error:
        raise CommandFailed(f"{error}: stop the checkers first", ExitCode.CONFLICT) from None
    print_object(invocation, {"was": renewed["was"], "installation": renewed["now"]})
    invocation.say(
        "give the copy its own Kafka cluster, then run: outbox shard resolve SHARD --accept"
    )


def rebase(context: typer.Context, *, reason: Reason, operator: Operator = None) -> None:
    """After a restore into another cluster: raise new ids above every stored one."""
    from outbox.postgres.operators.installation_admin import rebase_installation

    invocation, action = context_of(context), operator_action(operator, reason)
    invocation.confirm(REBASE_QUESTION)
    try:
        done = rebase_installation(database_url(), action)
    except SessionsOpen as error:
        raise CommandFailed(
            f"{error}: stop every API and checker first", ExitCode.CONFLICT
        ) from None
    print_object(invocation, done._asdict())
    invocation.say(
        "new ids are above all stored ones"
        if done.was == done.now
        else "new ids begin above all stored ones; resolve the halted shards with --accept"
    )
