"""`outbox held`: records that Kafka refuses and the records that wait for them."""

from typing import Annotated

import typer

from cli.invocation.command_group import command_group
from cli.invocation.context import context_of
from cli.invocation.operator import Operator, Reason, who_and_why
from cli.invocation.output import print_object
from cli.service.api_client import api_client, path_of
from cli.service.lists import Cursor, Limit, print_page

ROOT = "/v1/held-records"
COLUMNS = ("message_id", "topic", "publish_error", "attempts", "next_attempt_at", "waiting_behind")

Id = Annotated[str, typer.Argument(metavar="MESSAGE_ID", help="As `outbox held list` shows it.")]


def make_app() -> typer.Typer:
    """Build the command group."""
    return command_group(
        "List, release and drop records that Kafka refuses.",
        {
            "list": list_held,
            "release": release,
            "drop": drop,
        },
    )


def list_held(
    context: typer.Context,
    *,
    topic: Annotated[str | None, typer.Option(help="Only this topic.")] = None,
    refused: Annotated[
        bool, typer.Option("--refused", help="Leave out the records that only wait.")
    ] = False,
    dropped: Annotated[
        bool, typer.Option("--dropped", help="List the dropped records instead.")
    ] = False,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> None:
    """List held records in the order of their ids."""
    kind = "dropped" if dropped else "held"
    none = f"no {kind} records{f' of the topic {topic}' if topic else ''}"
    print_page(context, ROOT, COLUMNS, none=none)


def release(
    context: typer.Context, message_id: Id, *, reason: Reason, operator: Operator = None
) -> None:
    """Publish a held record, and the records that wait behind it, now."""
    _settle(context, message_id, "release", reason, operator)


def drop(
    context: typer.Context, message_id: Id, *, reason: Reason, operator: Operator = None
) -> None:
    """Drop a record: it is never published, and the records that wait for it continue."""
    _settle(context, message_id, "drop", reason, operator)


def _settle(
    context: typer.Context, message_id: str, action: str, reason: str, operator: str | None
) -> None:
    with api_client(context) as api:
        path = f"{path_of(ROOT, message_id)}/{action}"
        answer = api.post(path, who_and_why(operator, reason))
    print_object(context_of(context), answer)
