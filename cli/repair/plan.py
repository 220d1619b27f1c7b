"""The plan of a repair: which findings are still open, and what stands against each message."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from cli.exit_codes import CommandFailed, ExitCode
from cli.service.api_client import ApiClient
from cli.service.bulk_progress import BULK
from cli.service.findings_client import at_most, findings
from cli.service.programs import reconciled

REPUBLISH = "republish"
OPEN = "open"
LOOKED = (ExitCode.OK, ExitCode.DISCREPANCIES, ExitCode.INCONCLUSIVE)
TOO_MANY = "messages would be published again; narrow it or raise --max-items"

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Rerun:
    """What the findings that were open have become at a new cut; without one nothing is known."""

    cut_at: str | None = None
    closed: dict[str, str] = field(default_factory=dict)
    """Statuses by finding id."""
    partial: bool = False
    """Not everything could be read: what is gone may still be told as open."""


def lost(api: ApiClient, run_id: str, classes: Sequence[str], most: int) -> list[Row]:
    """Return the run's open findings of these classes. Raises CommandFailed above ``most``."""
    found = chain.from_iterable(
        findings(api, run_id, **{"class": name, "status": OPEN}) for name in classes
    )
    return [_row(each) for each in at_most(found, most, TOO_MANY)]


def named(api: ApiClient, run_id: str, names: Sequence[str], most: int) -> list[Row]:
    """Return these findings of the run. Raises CommandFailed for one that it has not."""
    known = {each["finding_id"]: each for each in findings(api, run_id)}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise CommandFailed(f"no finding {unknown[0]} in run {run_id}", ExitCode.NOT_FOUND)
    wanted = (known[name] for name in dict.fromkeys(names))
    return [_row(each) for each in at_most(wanted, most, TOO_MANY)]


def look_again(run_id: str) -> Rerun:
    """Look at both stores again by a rerun; what is gone is closed then.

    Raises CommandFailed with its exit code where it came to no end.
    """
    code, printed = reconciled("rerun", run_id)
    if code not in LOOKED:
        line = f"could not look at both stores again (exit {code}); --no-rerun plans without"
        known = code in list(ExitCode)
        raise CommandFailed(line, ExitCode(code) if known else ExitCode.ERROR)
    told = json.loads(printed)
    closed = {
        each["finding_id"]: each["status"] for each in told["findings"] if each["status"] != OPEN
    }
    return Rerun(cut_at=told["cut_at"], closed=closed, partial=not told["complete"])


def judge(api: ApiClient, rows: Sequence[Row], order: Row, rerun: Rerun) -> None:
    """Say of each what it became, or what stands against it: its plan is then that word."""
    if not rows:
        return
    asked = {"finding_ids": [row["finding_id"] for row in rows]}
    answer = api.post(BULK, {**order, "filter": asked, "dry_run": True})
    refused = {each["finding_id"]: each["code"] for each in answer["refused"]}
    for row in rows:
        name = row["finding_id"]
        row["plan"] = rerun.closed.get(name) or refused.get(name, REPUBLISH)


def _row(found: Row) -> Row:
    shown = {name: found[name] for name in ("finding_id", "class", "topic", "message_id")}
    return {**shown, "key_hash": found["detail"].get("key_hash"), "plan": REPUBLISH}
