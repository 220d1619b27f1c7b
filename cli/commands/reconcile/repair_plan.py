"""The plan of a repair: which findings are still open, and what forbids each republication."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from cli.invocation.exit_codes import CommandFailed, ExitCode
from cli.service.api_client import ApiClient, path_of
from cli.service.bulk_progress import BULK
from cli.service.lists import at_most
from cli.service.programs import run_reconcile

REPUBLISH = "republish"
OPEN = "open"
LOOKED = (ExitCode.OK, ExitCode.DISCREPANCIES, ExitCode.INCONCLUSIVE)
TOO_MANY = "messages would be published again; select fewer or raise --max-items"

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Rerun:
    """The status of the open findings at a new cut; empty without a rerun."""

    cut_at: str | None = None
    closed: dict[str, str] = field(default_factory=dict)
    """Statuses by finding id."""
    partial: bool = False
    """Something could not be read: a resolved finding may still be shown as open."""


def lost_findings(api: ApiClient, run_id: str, finding_class: str, most: int) -> list[Row]:
    """Return the run's open findings of this class. Raises CommandFailed above ``most``."""
    found = api.rows(_findings(run_id), {"finding_class": finding_class, "status": OPEN})
    return [_row(each) for each in at_most(found, most, TOO_MANY)]


def named_findings(api: ApiClient, run_id: str, names: Sequence[str], most: int) -> list[Row]:
    """Return these findings of the run. Raises CommandFailed for one that is not in it."""
    known = {each["finding_id"]: each for each in api.rows(_findings(run_id))}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise CommandFailed(f"no finding {unknown[0]} in run {run_id}", ExitCode.NOT_FOUND)
    wanted = (known[name] for name in dict.fromkeys(names))
    return [_row(each) for each in at_most(wanted, most, TOO_MANY)]


def rerun_audit(run_id: str) -> Rerun:
    """Check both stores again with a rerun; findings that no longer hold are closed by it.

    Raises CommandFailed with the rerun's exit code if it did not finish.
    """
    code, printed = run_reconcile("rerun", run_id)
    if code not in LOOKED:
        line = f"the rerun failed (exit {code}); --no-rerun plans without it"
        known = code in list(ExitCode)
        raise CommandFailed(line, ExitCode(code) if known else ExitCode.ERROR)
    result = json.loads(printed)
    closed = {
        each["finding_id"]: each["status"] for each in result["findings"] if each["status"] != OPEN
    }
    return Rerun(cut_at=result["cut_at"], closed=closed, partial=not result["complete"])


def fill_plan(api: ApiClient, rows: Sequence[Row], order: Row, rerun: Rerun) -> None:
    """Set each row's plan: its new status, the code of a refusal, or a republication."""
    if not rows:
        return
    asked = {"finding_ids": [row["finding_id"] for row in rows]}
    answer = api.post(BULK, {**order, "filter": asked, "dry_run": True})
    refused = {each["finding_id"]: each["code"] for each in answer["refused"]}
    for row in rows:
        name = row["finding_id"]
        row["plan"] = rerun.closed.get(name) or refused.get(name, REPUBLISH)


def _row(found: Row) -> Row:
    shown = {name: found[name] for name in ("finding_id", "class", "detail", "topic", "message_id")}
    return {**shown, "key_hash": found["evidence"].get("key_hash"), "plan": REPUBLISH}


def _findings(run_id: str) -> str:
    """Return the path of a run's findings."""
    return f"{path_of('/v1/reconciliations', run_id)}/discrepancies"
