"""`outbox message`: shows half messages, ends them and restarts their checks."""

from typing import Annotated, Any, Literal

import typer

from cli.commands.message.tail import tail
from cli.invocation.command_group import command_group
from cli.invocation.context import context_of
from cli.invocation.exit_codes import CommandFailed, ExitCode
from cli.invocation.operator import Operator, Reason, who_and_why
from cli.invocation.output import print_object, print_rows
from cli.service.api_client import api_client, path_of
from cli.service.bulk_progress import BULK, wait_finished
from cli.service.lists import Cursor, Limit, print_page
from outbox.messages.message import Resolution

ROOT = "/v1/half-messages"
COLUMNS = (
    *("message_id", "state", "producer_group", "topic", "transaction_id", "prepared_at"),
    "check_count",
)
PARKED_COLUMNS = (
    *("message_id", "producer_group", "topic", "transaction_id", "parked_at"),
    *("parked_reason", "check_count"),
)
EVENT_COLUMNS = (
    *("seq", "at", "type", "decision", "decided_by"),
    *("outcome", "http_status", "error", "operator", "reason"),
)
NO_MATCH = "no message matches"
NO_MESSAGES = "no messages yet: register a producer with `outbox group set`; it prepares them"

Ids = Annotated[
    list[str] | None, typer.Argument(metavar="MESSAGE_ID", help="The messages to act on.")
]
Id = Annotated[str, typer.Argument(metavar="MESSAGE_ID", help="As `outbox message list` shows it.")]
Filter = Annotated[
    list[str] | None,
    typer.Option(
        "--filter",
        metavar="NAME=VALUE",
        help="Act on all that match; repeat to narrow. Names are options of `outbox message list`.",
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Only count the messages that would be acted on.")
]
MaxItems = Annotated[
    int,
    typer.Option(metavar="COUNT", min=1, max=100_000, help="With --filter: refuse to act on more."),
]
LastOutcome = Annotated[
    str | None, typer.Option(help="Outcome of its last check, such as timeout; none: no check.")
]
LastHttpStatus = Annotated[
    int | None,
    typer.Option(metavar="STATUS", help="HTTP status of its last check, such as 500."),
]


def make_app() -> typer.Typer:
    """Build the command group."""
    return command_group(
        "Show, end, recheck and decide half messages, and see their records.",
        {
            "list": list_messages,
            "show": show,
            "tail": tail,
            "end": end,
            "recheck": recheck,
            "force-end": force_end,
        },
    )


def list_messages(
    context: typer.Context,
    *,
    state: Annotated[
        str | None, typer.Option(help="PREPARED, PARKED, COMMITTED, PUBLISHED or ROLLED_BACK.")
    ] = None,
    producer_group: Annotated[
        str | None, typer.Option("--group", "--producer-group", help="Producer group.")
    ] = None,
    topic: Annotated[str | None, typer.Option(help="Topic.")] = None,
    transaction_id: Annotated[str | None, typer.Option(help="The producer's own id.")] = None,
    key: Annotated[str | None, typer.Option(help="Key of the record, as text.")] = None,
    tag: Annotated[str | None, typer.Option(help="A tag of the message.")] = None,
    decided_by: Annotated[
        str | None, typer.Option(help="producer, check, operator, policy or recovery.")
    ] = None,
    prepared_from: Annotated[
        str | None, typer.Option(help="From this time, such as 2026-09-21T14:00:00Z.")
    ] = None,
    prepared_to: Annotated[str | None, typer.Option(help="Before this time.")] = None,
    min_checks: Annotated[
        int | None, typer.Option(metavar="COUNT", help="Checked at least this many times.")
    ] = None,
    last_outcome: LastOutcome = None,
    last_http_status: LastHttpStatus = None,
    trace_id: Annotated[
        str | None, typer.Option(help="Trace of its prepare: 32 hexadecimal digits.")
    ] = None,
    limit: Limit = None,
    cursor: Cursor = None,
) -> None:
    """List messages, newest first."""
    columns = PARKED_COLUMNS if state == "PARKED" else COLUMNS
    is_filtered = any(value is not None for value in context.params.values())
    print_page(context, ROOT, columns, none=NO_MATCH if is_filtered else NO_MESSAGES)


def show(
    context: typer.Context,
    message_id: Id,
    *,
    history: Annotated[bool, typer.Option("--history", help="Show its events instead.")] = False,
    payload: Annotated[
        bool, typer.Option("--payload", help="Show key, value and headers too.")
    ] = False,
) -> None:
    """Show one message."""
    invocation = context_of(context)
    with api_client(context) as api:
        if history:
            body = api.get(f"{_path(message_id)}/history")
            print_rows(invocation, body["events"], EVENT_COLUMNS, body)
        else:
            query = {"include": "payload" if payload else None}
            print_object(invocation, api.get(_path(message_id), query))


def end(
    context: typer.Context,
    message_id: Id,
    *,
    decision: Annotated[Resolution, typer.Option(help="Outcome of the local transaction.")],
    reason: Annotated[str | None, typer.Option(help="Reason, kept with the decision.")] = None,
    wait: Annotated[
        int | None,
        typer.Option(metavar="SECONDS", min=0, max=30, help="Wait this long for the publication."),
    ] = None,
) -> None:
    """End a message as its producer would: report the outcome of its local transaction."""
    body = {"decision": decision.value} | ({"reason": reason} if reason else {})
    headers = None if wait is None else {"prefer": f"wait={wait}"}
    with api_client(context, extra_seconds=float(wait or 0)) as api:
        answer = api.post(f"{_path(message_id)}/end", body, headers=headers)
    print_object(context_of(context), answer)


def recheck(
    context: typer.Context,
    message_ids: Ids = None,
    *,
    reason: Reason,
    operator: Operator = None,
    filters: Filter = None,
    dry_run: DryRun = False,
    max_items: MaxItems = 1000,
) -> None:
    """Check parked messages again, or check undecided ones now."""
    body = who_and_why(operator, reason)
    bulk = {**body, "action": "recheck", "dry_run": dry_run, "max_items": max_items}
    _act(context, "recheck", message_ids or [], body, filters or [], bulk)


def force_end(
    context: typer.Context,
    message_ids: Ids = None,
    *,
    decision: Annotated[Literal["COMMIT", "ROLLBACK"], typer.Option(help="The final decision.")],
    reason: Reason,
    operator: Operator = None,
    filters: Filter = None,
    dry_run: DryRun = False,
    max_items: MaxItems = 1000,
) -> None:
    """Decide messages as an operator, without a check of their producer. This is final."""
    invocation = context_of(context)
    body = {"decision": decision, **who_and_why(operator, reason)}
    bulk = {**body, "action": "force_end", "dry_run": dry_run, "max_items": max_items}
    if not dry_run:
        invocation.confirm(f"Decide {decision}? This is final.")
    _act(context, "force-end", message_ids or [], body, filters or [], bulk)


def _act(
    context: typer.Context,
    action: str,
    message_ids: list[str],
    body: dict[str, Any],
    filters: list[str],
    bulk: dict[str, Any],
) -> None:
    """Act on one message, or by one bulk action on several or on all that match the filters."""
    if bool(message_ids) == bool(filters):
        raise CommandFailed("give either message ids or --filter", ExitCode.USAGE)
    invocation, dry_run = context_of(context), bulk["dry_run"]
    with api_client(context) as api:
        if len(message_ids) == 1 and not dry_run:
            print_object(invocation, api.post(f"{_path(message_ids[0])}/{action}", body))
            return
        named = _filter(filters) if filters else {"message_ids": message_ids}
        answer = api.post(BULK, {**bulk, "filter": named})
        done = answer if dry_run else wait_finished(api, answer)
    print_object(invocation, done)
    if done.get("failed"):
        raise CommandFailed(f"{done['failed']} not done", ExitCode.CONFLICT)


def _filter(texts: list[str]) -> dict[str, str]:
    """Return the filters by the API's names; the names of the options are known too."""
    parts = [text.partition("=") for text in texts]
    pairs = {_field(name): value for name, sign, value in parts if sign}
    if len(pairs) != len(texts):
        raise CommandFailed("--filter needs NAME=VALUE, each name once", ExitCode.USAGE)
    return pairs


def _field(option: str) -> str:
    return "producer_group" if option == "group" else option.replace("-", "_")


def _path(message_id: str) -> str:
    return path_of(ROOT, message_id)
