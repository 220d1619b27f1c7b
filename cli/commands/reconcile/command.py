"""`outbox reconcile`: runs an audit of both stores, shows finished ones, repairs losses."""

from typing import Annotated, get_args

import typer

from cli.commands.reconcile.fix import fix
from cli.commands.reconcile.program_run import PASSED_ON, RunId, run
from cli.invocation.command_group import command_group
from cli.invocation.context import Output, context_of
from cli.invocation.output import print_object, print_rows
from cli.service.api_client import api_client, path_of
from cli.service.lists import Cursor, Limit, print_page
from outbox.reconciliation.finding import FindingKind, first_of_each_cause

ROOT = "/v1/reconciliations"
RUN_COLUMNS = ("run_id", "finished_at", "verdict", "sentence")
FINDING_COLUMNS = ("finding_id", "severity", "class", "detail", "status", "topic", "message_id")
CHANGES = ("new", "resolved", "fixed", "unverifiable")
KINDS = ", ".join(get_args(FindingKind))
NO_RUNS = (
    "no finished runs: make one with `outbox reconcile run`; only a key of all groups sees them"
)
HEAD = ("run_id", "verdict", "sentence", "totals", "in_flight", *CHANGES)


def make_app() -> typer.Typer:
    """Build the command group."""
    app = command_group(
        "Compare PostgreSQL with Kafka, show the findings and repair losses.",
        {"list": list_runs, "show": show, "fix": fix},
    )
    app.command("run", add_help_option=False, context_settings=PASSED_ON)(run)
    return app


def list_runs(
    context: typer.Context,
    *,
    limit: Limit = None,
    cursor: Cursor = None,
) -> None:
    """List finished runs, newest first."""
    print_page(context, ROOT, RUN_COLUMNS, none=NO_RUNS)


def show(
    context: typer.Context,
    run_id: RunId,
    *,
    kind: Annotated[
        FindingKind | None,
        typer.Option(metavar="KIND", help=f"Show only this kind: {KINDS}."),
    ] = None,
    limit: Limit = None,
    cursor: Cursor = None,
) -> None:
    """Show a run and its findings with their present status."""
    invocation, at = context_of(context), path_of(ROOT, run_id)
    with api_client(context) as api:
        document = api.get(at)
        query = {"kind": kind, "limit": limit, "cursor": cursor}
        page = api.get(f"{at}/discrepancies", query)
    if invocation.output is Output.TABLE and kind is None and cursor is None:
        print_object(invocation, {name: document[name] for name in HEAD if name in document})
    if invocation.output is Output.JSON and kind is None:
        print_object(invocation, document)
        return
    none = f"no findings of the kind {kind}" if kind else "no findings"
    print_rows(invocation, page["data"], FINDING_COLUMNS, page, none=none)
    if invocation.output is Output.TABLE:
        for each in first_of_each_cause(document.get("findings", ()), page["data"]):
            meaning, action, command = each["meaning"], each["action"], each["command"]
            invocation.say(f"{each['class']}/{each['detail']}: {meaning}. {action} Next: {command}")
    invocation.say_more(page)
