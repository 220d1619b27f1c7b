"""`outbox reconcile fix`: plan how a run's lost messages are published again, and order it.

Findings that need no repair are accepted, records that should not be there are exported.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.context import context_of
from cli.durations import moment
from cli.exit_codes import CommandFailed, ExitCode
from cli.operator import operator_name
from cli.output import print_rows
from cli.repair.findings_export import accept, export, write
from cli.repair.plan import REPUBLISH, Rerun, judge, look_again, lost, named
from cli.service.api_client import api_client
from cli.service.bulk_progress import BULK, followed

COLUMNS = ("plan", "class", "topic", "message_id", "finding_id")
PLANNING = "outbox reconcile fix: plan"
"""The reason of a dry run, which the API asks for and nobody keeps."""


class LostClass(StrEnum):
    """The classes of finding whose messages can be published again."""

    LOST = "LOST"
    SKIPPED = "SKIPPED"


Classes = Annotated[
    list[LostClass] | None, typer.Option("--class", help="LOST, SKIPPED; both without it.")
]
Names = Annotated[
    list[str] | None,
    typer.Option("--finding", help="These findings alone; a mismatch is republished so only."),
]
Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Which findings are planned: those named, else those of the classes."""

    names: Sequence[str]
    classes: Sequence[str]
    rerun: bool
    """First look at both stores again."""


def fix(
    context: typer.Context,
    run_id: Annotated[str, typer.Argument(metavar="RUN_ID")],
    *,
    classes: Classes = None,
    names: Names = None,
    rerun: Annotated[bool, typer.Option(help="First look at both stores again.")] = True,
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
    """Plan how the run's lost messages are published again; with --apply have it done.

    What differs from its message is published again only where --finding names it.
    """
    if apply + exporting + bool(accepted) > 1:
        raise CommandFailed("one of --apply, --accept and --export", ExitCode.USAGE)
    if classes and names:
        raise CommandFailed("one of --class and --finding", ExitCode.USAGE)
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
        by_class = [each.value for each in classes or list(LostClass)]
        wanted = Wanted(names=names or (), classes=by_class, rerun=rerun)
        more = {"max_items": max_items, "accept_order": accept_order, "rate": rate}
        order = {**who, "action": REPUBLISH, **more}
        _republish(context, run_id, wanted, order, plan_file, apply=apply)


def _republish(
    context: typer.Context,
    run_id: str,
    wanted: Wanted,
    order: Row,
    plan_file: Path | None,
    *,
    apply: bool,
) -> None:
    """Plan, and if asked have it done and wait until all is handed to the relay."""
    invocation = context_of(context)
    with api_client(context) as api:
        if wanted.names:
            rows = named(api, run_id, wanted.names, order["max_items"])
        else:
            rows = lost(api, run_id, wanted.classes, order["max_items"])
        rerun = look_again(run_id) if rows and wanted.rerun else Rerun()
        judge(api, rows, order, rerun)
        plan = {"run_id": run_id, "rerun": rerun.cut_at, "plan": rows}
        write(plan_file or Path(f"fix-{run_id}.json"), plan)
        print_rows(invocation, rows, COLUMNS, {**plan, "applied": apply})
        for line in _noted(rows, rerun):
            invocation.say(line)
        due = [row["finding_id"] for row in rows if row["plan"] == REPUBLISH]
        if not apply:
            invocation.say(f"{len(due)} of {len(rows)} would be published again: --apply --reason")
        elif due:
            invocation.confirm(f"Publish {len(due)} messages again?")
            begun = api.post(BULK, {**order, "filter": {"finding_ids": due}})
            _tell(invocation.say, followed(api, begun))


def _noted(rows: Sequence[Row], rerun: Rerun) -> Iterator[str]:
    """Say what a new look at both stores has changed in the plan."""
    gone = sum(row["finding_id"] in rerun.closed for row in rows)
    if gone:
        yield f"{gone} of {len(rows)} are no longer open and left out, at the cut of {rerun.cut_at}"
    if rerun.partial:
        yield f"not everything could be read at {rerun.cut_at}: what is still open may be gone"


def _tell(say: Any, action: Row) -> None:
    """Say how the order ended. Raises CommandFailed when something was not done."""
    say(f"{action['done']} handed to the relay as repair {action['id']}; the next run judges them")
    if action["failed"]:
        codes = ", ".join(sorted({each["code"] for each in action["failures"]}))
        raise CommandFailed(f"{action['failed']} not done: {codes}", ExitCode.CONFLICT)
