"""`outbox reconcile fix`: plans and orders the republication of a run's lost messages.

It also accepts findings that need no repair.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal

import typer

from cli.commands.reconcile.program_run import RunId
from cli.commands.reconcile.repair_plan import (
    REPUBLISH,
    fill_plan,
    lost_findings,
    named_findings,
)
from cli.invocation.context import context_of
from cli.invocation.durations import moment
from cli.invocation.exit_codes import CommandFailed, ExitCode
from cli.invocation.operator import Operator, who_and_why
from cli.invocation.output import print_rows
from cli.service.api_client import ApiClient, api_client
from cli.service.bulk_progress import BULK, wait_finished

COLUMNS = ("finding_id", "plan", "class", "detail", "topic", "message_id")
PLANNING = "outbox reconcile fix: plan"
"""The reason of a dry run: the API requires one, but does not store it."""
NOTHING_LOST = "the run has no open finding that a publication would repair"


LOST = "LOST"
Lost = Annotated[
    Literal["LOST", "LOST/published", "LOST/skipped"] | None,
    typer.Option(
        "--class",
        metavar="CLASS",
        help="LOST (both of its causes), LOST/published or LOST/skipped.",
        show_default=LOST,
    ),
]
Names = Annotated[
    list[str] | None,
    typer.Option(
        "--finding",
        metavar="FINDING_ID",
        help="Plan only this finding; a mismatch must be named here.",
    ),
]
Reason = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="With --apply and --accept; kept in the audit log."),
]
AcceptOrder = Annotated[
    bool,
    typer.Option("--accept-order", help="Also publish after newer messages of the same key."),
]
MaxItems = Annotated[
    int,
    typer.Option(metavar="COUNT", min=1, max=10_000, help="Refuse to plan more messages."),
]
Accepted = Annotated[
    list[str] | None,
    typer.Option(
        "--accept", metavar="FINDING_ID", help="Accept this finding: it no longer counts."
    ),
]
Until = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="End of an acceptance, such as 30d or 2026-12-31 (UTC)."),
]
Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Which findings to plan: the named ones, else those of the class."""

    names: Sequence[str]
    finding_class: str
    """CLASS or CLASS/detail."""


def fix(
    context: typer.Context,
    run_id: RunId,
    *,
    lost: Lost = None,
    names: Names = None,
    apply: Annotated[
        bool, typer.Option("--apply", help="Carry the plan out, not only show it.")
    ] = False,
    reason: Reason = None,
    operator: Operator = None,
    accept_order: AcceptOrder = False,
    max_items: MaxItems = 1000,
    accepted: Accepted = None,
    until: Until = None,
) -> None:
    """Plan the republication of the run's lost messages; with --apply carry it out.

    A record that differs from its message is published again only if --finding names it.
    """
    _refuse_several("--apply and --accept", apply, accepted)
    _refuse_several("--class and --finding", lost, names)
    if (apply or accepted) and not (reason or "").strip():
        raise CommandFailed("--reason is required; it is kept in the audit log", ExitCode.USAGE)
    who = who_and_why(operator, reason or PLANNING)
    if accepted:
        if until is None:
            raise CommandFailed("--accept needs --until", ExitCode.USAGE)
        _accept(context, run_id, accepted, moment(until, "--until"), who)
    else:
        wanted = Wanted(names=names or (), finding_class=lost or LOST)
        more = {"max_items": max_items, "accept_order": accept_order}
        order = {**who, "action": REPUBLISH, **more}
        _republish(context, run_id, wanted, order, apply=apply)


def _refuse_several(options: str, *given: object) -> None:
    """Raise CommandFailed if more than one of these options is given."""
    if sum(map(bool, given)) > 1:
        raise CommandFailed(f"use only one of {options}", ExitCode.USAGE)


def _accept(
    context: typer.Context, run_id: str, names: Sequence[str], until: datetime, who: Row
) -> None:
    """Accept findings until a moment: they no longer count. Exits 3 for one that is not open."""
    invocation = context_of(context)
    invocation.confirm(f"Accept {len(names)} findings until {until:%Y-%m-%d %H:%M}?")
    with api_client(context) as api:
        for name in names:
            path = f"/v1/reconciliations/{run_id}/discrepancies/{name}/accept"
            api.post(path, {**who, "until": until.isoformat()})
            invocation.say(f"{name} is accepted")


def _republish(
    context: typer.Context,
    run_id: str,
    wanted: Wanted,
    order: Row,
    *,
    apply: bool,
) -> None:
    """Plan; with ``apply`` also wait until every message is handed to the relay."""
    invocation = context_of(context)
    with api_client(context) as api:
        if wanted.names:
            rows = named_findings(api, run_id, wanted.names, order["max_items"])
        else:
            rows = lost_findings(api, run_id, wanted.finding_class, order["max_items"])
        fill_plan(api, rows, order)
        seen = _last_cut(api)
        plan = {"run_id": run_id, "seen_at": seen, "plan": rows, "applied": apply}
        print_rows(invocation, rows, COLUMNS, plan, none=NOTHING_LOST)
        invocation.say(f"as seen at {seen}: `outbox reconcile run` looks at both stores again")
        due = [row["finding_id"] for row in rows if row["plan"] == REPUBLISH]
        if not apply:
            way = "; use --apply --reason" if due else ""
            invocation.say(f"{len(due)} of {len(rows)} would be published again{way}")
        elif due:
            invocation.confirm(f"Publish {len(due)} messages again?")
            started = api.post(BULK, {**order, "filter": {"finding_ids": due}})
            _tell(invocation.say, wait_finished(api, started))


def _last_cut(api: ApiClient) -> str:
    """Return the cut of the newest run: it has judged the findings of all earlier ones."""
    (newest,) = api.get("/v1/reconciliations", {"limit": 1})["data"]
    return str(newest["cut_at"])


def _tell(say: Any, action: Row) -> None:
    """Show the result. Raises CommandFailed when a message was not handed over."""
    say(f"{action['done']} handed to the relay as repair {action['id']}; the next run judges them")
    if action["failed"]:
        codes = ", ".join(sorted({each["code"] for each in action["failures"]}))
        raise CommandFailed(f"{action['failed']} not done: {codes}", ExitCode.CONFLICT)
