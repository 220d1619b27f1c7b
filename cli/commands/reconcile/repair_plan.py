"""The plan of a repair: which findings are still open, and what forbids each republication."""

from collections.abc import Sequence
from typing import Any

from cli.invocation.exit_codes import CommandFailed, ExitCode
from cli.service.api_client import ApiClient, path_of
from cli.service.bulk_progress import BULK
from cli.service.lists import at_most

REPUBLISH = "republish"
OPEN = "open"
TOO_MANY = "messages would be published again; select fewer or raise --max-items"

Row = dict[str, Any]


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


def fill_plan(api: ApiClient, rows: Sequence[Row], order: Row) -> None:
    """Set each row's plan: the code of a refusal, or a republication."""
    if not rows:
        return
    asked = {"finding_ids": [row["finding_id"] for row in rows]}
    answer = api.post(BULK, {**order, "filter": asked, "dry_run": True})
    refused = {each["finding_id"]: each["code"] for each in answer["refused"]}
    for row in rows:
        row["plan"] = refused.get(row["finding_id"], REPUBLISH)


def _row(found: Row) -> Row:
    shown = {name: found[name] for name in ("finding_id", "class", "detail", "topic", "message_id")}
    return {**shown, "key_hash": found["evidence"].get("key_hash"), "plan": REPUBLISH}


def _findings(run_id: str) -> str:
    """Return the path of a run's findings."""
    return f"{path_of('/v1/reconciliations', run_id)}/discrepancies"
