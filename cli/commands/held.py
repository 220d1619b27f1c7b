"""`outbox held`: records that Kafka refuses and the records that wait for them.

Reads and writes the database directly.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypeVar

import typer

from cli.invocation.context import context_of
from cli.invocation.exit_codes import CommandFailed, ExitCode
from cli.invocation.operator import Operator, Reason, operator_name
from cli.invocation.output import print_object, print_rows
from cli.invocation.settings import database_url
from outbox.errors import InvalidMessageId, MessageNotFound, NotHeld
from outbox.messages.message_id import HalfId, Nonce, message_id_text, parse_message_id
from outbox.operators.held_records import HeldAdmin, HeldMessage
from outbox.operators.message_view import OperatorAction

COLUMNS = ("message_id", "topic", "publish_error", "attempts", "next_attempt_at", "waiting_behind")

Id = Annotated[str, typer.Argument(metavar="MESSAGE_ID", help="As `outbox held list` shows it.")]

_T = TypeVar("_T")


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
    after: Annotated[
        str | None, typer.Option(metavar="MESSAGE_ID", help="Continue after this message.")
    ] = None,
) -> None:
    """List held records in the order of their ids."""
    behind = _parsed(after)[0] if after is not None else None

    async def ask(desk: HeldAdmin) -> list[HeldMessage]:
        found = await desk.list_held(
            limit=limit, after=behind, topic=topic, refused_only=refused, dropped=dropped
        )
        return list(found)

    rows = [_row(held) for held in _with_desk(ask)]
    kind = "dropped" if dropped else "held"
    none = f"no {kind} records{f' of the topic {topic}' if topic else ''}"
    print_rows(context_of(context), rows, COLUMNS, none=none)
    if len(rows) == limit:
        context_of(context).say(f"more: --after {rows[-1]['message_id']}")


def release(
    context: typer.Context, message_id: Id, *, reason: Reason, operator: Operator = None
) -> None:
    """Publish a held record, and the records that wait behind it, now."""
    held, action = _parsed(message_id), _action(reason, operator)
    _with_desk(lambda desk: desk.release_now(*held, action))
    print_object(context_of(context), {"message_id": message_id, "released": True})


def drop(
    context: typer.Context, message_id: Id, *, reason: Reason, operator: Operator = None
) -> None:
    """Drop a record: it is never published, and the records that wait for it continue."""
    held, action = _parsed(message_id), _action(reason, operator)
    _with_desk(lambda desk: desk.drop_held(*held, action))
    print_object(context_of(context), {"message_id": message_id, "dropped": True})


def _with_desk(ask: Callable[[HeldAdmin], Awaitable[_T]]) -> _T:
    """Run a command on the held records. Raises CommandFailed for a record that is not held."""
    from cli.stores.command_pool import command_pool
    from outbox.postgres.operators.held_admin import PostgresHeldAdmin

    async def run() -> _T:
        async with command_pool(database_url()) as pool:
            return await ask(PostgresHeldAdmin(pool))

    try:
        return asyncio.run(run())
    except MessageNotFound:
        line = "no record with this id was ever held: see `outbox held list`"
        raise CommandFailed(line, ExitCode.NOT_FOUND) from None
    except NotHeld:
        line = "the record is already released or dropped: see `outbox held list --dropped`"
        raise CommandFailed(line, ExitCode.CONFLICT) from None


def _action(reason: str, operator: str | None) -> OperatorAction:
    if not reason.strip():
        raise CommandFailed("--reason must not be empty", ExitCode.USAGE)
    return OperatorAction(operator=operator or operator_name(), reason=reason, key_id=None)


def _parsed(message_id: str) -> tuple[HalfId, Nonce]:
    try:
        return parse_message_id(message_id)
    except InvalidMessageId:
        raise CommandFailed(f"{message_id!r} is not a message id", ExitCode.USAGE) from None


def _row(held: HeldMessage) -> dict[str, Any]:
    return {
        "message_id": message_id_text(held.half_id, held.nonce),
        "topic": held.topic,
        "key": held.key.decode(errors="replace") if held.key is not None else None,
        "topic_wide": held.topic_wide,
        "held_at": held.held_at.isoformat(),
        "publish_error": held.publish_error,
        "attempts": held.attempts,
        "next_attempt_at": held.next_attempt_at.isoformat(),
        "waiting_behind": held.waiting_behind,
        "repair": held.repair,
        "dropped_at": held.dropped_at.isoformat() if held.dropped_at else None,
        "drop_reason": held.drop_reason,
    }
