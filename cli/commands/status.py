"""`outbox status`: shows the checker's heartbeats and the progress of the relay."""

from typing import Any

import typer

from cli.invocation.context import Output, context_of
from cli.invocation.output import print_object, print_rows
from cli.invocation.settings import database_url
from outbox.postgres.operators.operator_view import OperatorView

SHARD_COLUMNS = ("shard", "owner", "position", "backlog", "halt_reason", "updated_at")
NO_TASKS = "no checker has reported yet: start one with `outbox checker`"


def status(context: typer.Context) -> None:
    """Show the checker's tasks, and each shard's owner, position, backlog and halt reason."""
    invocation = context_of(context)
    with OperatorView(database_url()) as view:
        tasks = view.rows("tasks")
        shards = [shard_row(shard) for shard in view.rows("shards")]
    body = {"tasks": tasks, "shards": shards}
    if invocation.output is not Output.TABLE:
        print_object(invocation, body)
        return
    beats = [{"task": each["task"], "ago": f"{each['seconds_ago']:.1f} s"} for each in tasks]
    print_rows(invocation, beats, ("task", "ago"), none=NO_TASKS)
    print()
    print_rows(invocation, shards, SHARD_COLUMNS)


def shard_row(shard: dict[str, Any]) -> dict[str, Any]:
    """Return a shard as a row to print."""
    at = shard["updated_at"]
    return {**shard, "updated_at": at.isoformat() if at else None}
