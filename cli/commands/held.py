"""`outbox held`: records that Kafka refuses and the records that wait for them."""

from typing import Annotated

import typer

from cli.invocation.context import context_of
from cli.invocation.operator import Operator, Reason, operator_name
from cli.invocation.output import print_object, print_rows
from cli.service.api_client import api_client, path_of

ROOT = "/v1/held-records"
COLUMNS = ("message_id", "topic", "publish_error", "attempts", "next_attempt_at", "waiting_behind")

Id = Annotated[str, typer.Argument(metavar="MESSAGE_ID", help="As `outbox held list` shows it.")]


def make_app() -> typer.Typer:
    """Build the command group."""
    app = typer.Typer(
        help="List, release and drop records that Kafka refuses.", no_args_is_help=True
    )
    app.command("list")(list_held)
    app.command("release")(release)
    app.command("drop")(drop)
    return app


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
    limit: Annotated[
        int, typer.Option(metavar="COUNT", min=1, max=500, help="Number of rows.")
    ] = 100,
    cursor: Annotated[str | None, typer.Option(help="Continue where the last page ended.")] = None,
) -> None:
    """List held records in the order of their ids."""
    query = {"topic": topic, "refused": refused, "dropped": dropped}
    with api_client(context) as api:
        page = api.get(ROOT, {**query, "limit": limit, "cursor": cursor})
    kind = "dropped" if dropped else "held"
    none = f"no {kind} records{f' of the topic {topic}' if topic else ''}"
    print_rows(context_of(context), page["data"], COLUMNS, page, none=none)
    context_of(context).say_more(page)


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
    body = {"operator": operator or operator_name(), "reason": reason}
    with api_client(context) as api:
        answer = api.post(f"{path_of(ROOT, message_id)}/{action}", body)
    print_object(context_of(context), answer)
