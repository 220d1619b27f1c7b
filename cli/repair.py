"""`outbox reconcile fix`: plan how a run's lost messages are published again, and order it.

Findings that need no repair are accepted, records that should not be there are exported.
"""

from collections.abc import Sequence
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.api_client import ApiClient, api_client
from cli.bulk import BULK, followed
from cli.durations import moment
from cli.exit_codes import CommandFailed, ExitCode
from cli.findings_fix import accept, export, write
from cli.invocation import invocation_of
from cli.operator import operator_name
from cli.output import print_rows
from cli.run_findings import at_most, findings

COLUMNS = ("plan", "class", "topic", "message_id", "finding_id")
REPUBLISH = "republish"
PLANNING = "outbox reconcile fix: plan"
"""The reason of a dry run, which the API asks for and nobody keeps."""


class LostClass(StrEnum):
    """The classes of finding whose messages can be published again."""

    LOST = "LOST"
    SKIPPED = "SKIPPED"


Classes = Annotated[
    list[LostClass] | None, typer.Option("--class", help="LOST, SKIPPED; both without it.")
]
Row = dict[str, Any]


def fix(
    context: typer.Context,
    run_id: Annotated[str, typer.Argument(metavar="RUN_ID")],
    *,
    classes: Classes = None,
    apply: Annotated[bool, typer.Option("--apply", help="Do it; else only plan.")] = False,
    reason: Annotated[str | None, typer.Option(help="Why; kept in the audit log.")] = None,
    operator: Annotated[str | None, typer.Option(help="Who.", show_default="the OS user")] = None,
    accept_order: Annotated[
        bool, typer.Option("--accept-order", help="Also behind newer messages of a key.")
    ] = False,
    max_items: Annotated[int, typer.Option(min=1, max=10_000, help="At most so many.")] = 1000,
    rate: Annotated[
        int | None, typer.Option(min=1, max=10_000, help="Messages a second; all at once without.")
    ] = None,
    accepted: Annotated[
        list[str] | None, typer.Option("--accept", help="Findings that count no more.")
    ] = None,
    until: Annotated[
        str | None, typer.Option(help="Until when they are accepted: 30d, 2026-12-31.")
    ] = None,
    exporting: Annotated[
        bool, typer.Option("--export", help="List the records that should not be there.")
    ] = False,
    plan_file: Annotated[
        Path | None, typer.Option(help="Where the plan goes.", show_default="fix-RUN_ID.json")
    ] = None,
) -> None:
    """Plan how the run's lost messages are published again; with --apply have it done."""
    if apply + exporting + bool(accepted) > 1:
        raise CommandFailed("one of --apply, --accept and --export", ExitCode.USAGE)
    if (apply or accepted) and not (reason or "").strip():
        raise CommandFailed("needs --reason, kept in the audit log", ExitCode.USAGE)
    who = {"operator": operator or operator_name(), "reason": reason or PLANNING}
    if exporting:
        export(context, run_id, plan_file, max_items)
    elif accepted:
        if until is None:
            raise CommandFailed("--accept needs --until", ExitCode.USAGE)
        accept(context, run_id, accepted, moment(until, "--until"), who)
    else:
        wanted = [each.value for each in classes or list(LostClass)]
        more = {"max_items": max_items, "accept_order": accept_order, "rate": rate}
        order = {**who, "action": REPUBLISH, **more}
        _republish(context, run_id, wanted, order, plan_file, apply=apply)


def _republish(
    context: typer.Context,
    run_id: str,
    wanted: Sequence[str],
    order: Row,
    plan_file: Path | None,
    *,
    apply: bool,
) -> None:
    """Plan, and if asked have it done and wait until all is handed to the relay."""
    invocation = invocation_of(context)
    with api_client(context) as api:
        rows = _lost(api, run_id, wanted, order["max_items"])
        _judge(api, rows, order)
        write(plan_file or Path(f"fix-{run_id}.json"), {"run_id": run_id, "plan": rows})
        print_rows(invocation, rows, COLUMNS, {"run_id": run_id, "applied": apply, "plan": rows})
        due = [row["finding_id"] for row in rows if row["plan"] == REPUBLISH]
        if not apply:
            invocation.say(f"{len(due)} of {len(rows)} would be published again: --apply --reason")
        elif due:
            invocation.confirm(f"Publish {len(due)} messages again?")
            begun = api.post(BULK, {**order, "filter": {"finding_ids": due}})
            _tell(invocation.say, followed(api, begun))


def _lost(api: ApiClient, run_id: str, classes: Sequence[str], most: int) -> list[Row]:
    """Return the run's open findings of these classes. Raises CommandFailed above ``most``."""
    found = chain.from_iterable(
        findings(api, run_id, **{"class": name, "status": "open"}) for name in classes
    )
    line = "messages are lost; narrow by --class or raise --max-items"
    return [_row(each) for each in at_most(found, most, line)]


def _row(found: Row) -> Row:
    shown = {name: found[name] for name in ("finding_id", "class", "topic", "message_id")}
    return {**shown, "key_hash": found["detail"].get("key_hash"), "plan": REPUBLISH}


def _judge(api: ApiClient, rows: Sequence[Row], order: Row) -> None:
    """Ask what stands against each; its plan is then the reason."""
    if not rows:
        return
    names = [row["finding_id"] for row in rows]
    asked = {**order, "filter": {"finding_ids": names}, "dry_run": True}
    refused = {each["finding_id"]: each["code"] for each in api.post(BULK, asked)["refused"]}
    for row in rows:
        row["plan"] = refused.get(row["finding_id"], REPUBLISH)


def _tell(say: Any, action: Row) -> None:
    """Say how the order ended. Raises CommandFailed when something was not done."""
    say(f"{action['done']} handed to the relay as repair {action['id']}; the next run judges them")
    if action["failed"]:
        codes = ", ".join(sorted({each["code"] for each in action["failures"]}))
        raise CommandFailed(f"{action['failed']} not done: {codes}", ExitCode.CONFLICT)
