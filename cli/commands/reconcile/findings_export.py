"""Accepts and exports findings for `outbox reconcile fix`: those without a republication."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import typer

from cli.invocation.context import context_of
from cli.invocation.exit_codes import CommandFailed, ExitCode
from cli.invocation.output import print_rows
from cli.service.api_client import api_client
from cli.service.findings_client import at_most, findings

RECORD_COLUMNS = ("class", "topic", "partition", "offset", "message_id", "decision", "finding_id")
EVIDENCE = (
    *("partition", "offset", "key_hash", "producer_group"),
    *("decision", "decided_by", "decided_at", "record_time"),
)
"""The fields of a finding's detail in an export; no detail holds a key or a value."""

Row = dict[str, Any]


def accept(
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


def export(context: typer.Context, run_id: str, file: Path | None, most: int) -> None:
    """List the unexpected records, so that somebody can compensate for them."""
    invocation = context_of(context)
    with api_client(context) as api:
        found = findings(api, run_id, kind="unexpected", status="open")
        rows = [_record(each) for each in at_most(found, most, "records; raise --max-items")]
    path = file or Path(f"export-{run_id}.json")
    body = {"run_id": run_id, "records": rows}
    write(path, body)
    print_rows(invocation, rows, RECORD_COLUMNS, body, none="the run has no unexpected records")
    invocation.say(f"{len(rows)} unexpected records: {path}")


def write(path: Path, body: Mapping[str, Any]) -> None:
    """Write a file of JSON. Raises CommandFailed."""
    try:
        path.write_text(json.dumps(body, indent=2) + "\n", "utf-8")
    except OSError as error:
        raise CommandFailed(f"cannot write {path}: {error.strerror}", ExitCode.USAGE) from None


def _record(found: Row) -> Row:
    shown = {name: found[name] for name in ("finding_id", "class", "topic", "message_id")}
    return {**shown, **{name: found["detail"].get(name) for name in EVIDENCE}}
