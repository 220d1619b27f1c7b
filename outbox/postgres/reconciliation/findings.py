"""Findings from run to run, on the connection of the run store: what is new, what has closed how.

What a run is told that it would change, and what saving it changes, is one rule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from psycopg.types.json import Jsonb

from outbox.messages.message_id import HalfId
from outbox.postgres.sessions.connections import Connection
from outbox.postgres.sessions.statements import load
from outbox.reconciliation.stored_run import (
    Changes,
    FindingStatus,
    Gone,
    Look,
    StoredFinding,
    StoredRun,
)

SQL: Final = load("outbox.postgres.reconciliation.findings")
OPEN: Final = "open"
ENDED: Final = ("resolved", "fixed")


class Closing(NamedTuple):
    """A finding that a run has not seen again, and the status that it gets."""

    finding_id: str
    kind: str
    finding_class: str
    status: str
    becomes: str


def read_changes(
    connection: Connection, finding_ids: Sequence[str], complete: bool, gone: Gone
) -> Changes:
    """Tell how these open findings differ from the stored ones."""
    known = _known(connection, finding_ids)
    closing = _closing(connection, finding_ids, complete, gone)
    became = Counter(each.becomes for each in closing if each.status == OPEN)
    return Changes(
        new=len(finding_ids) - len(known),
        resolved=became["resolved"],
        fixed=became["fixed"],
        unverifiable=became["unverifiable"],
        known=known,
        closed=_by_class(closing, ENDED),
        expired=_by_class(closing, ("unverifiable",)),
    )


def read_accepted(connection: Connection) -> frozenset[str]:
    """Return the accepted findings; see RunStore.accepted."""
    return frozenset(finding_id for (finding_id,) in connection.execute(SQL["accepted"]))


def read_open_below(connection: Connection, half_id: HalfId) -> Sequence[HalfId]:
    """Return messages with a finding that may outlive them; see RunStore.open_below."""
    rows = connection.execute(SQL["open_below"], {"half_id": half_id})
    return [HalfId(found) for (found,) in rows]


def read_statuses(connection: Connection, run_id: str) -> Sequence[FindingStatus] | None:
    """Return what has become of a run's findings; see RunStore.statuses."""
    rows = connection.execute(SQL["statuses"], {"run_id": run_id}).fetchall()
    if not rows:
        return None
    return [FindingStatus(*row) for row in rows if row[0] is not None]


def save_findings(connection: Connection, run: StoredRun) -> Mapping[str, Mapping[str, int]]:
    """Store what a run found and close what it did not; return both by kind, new and resolved."""
    seen = [each.finding_id for each in run.findings]
    known = _known(connection, seen)
    closing = _closing(connection, seen, run.complete, run.gone)
    connection.execute(SQL["save_findings"], {"run_id": run.run_id, **_columns(run.findings)})
    _close(connection, closing, run.run_id)
    return {
        "new": Counter(each.kind for each in run.findings if each.finding_id not in known),
        "resolved": Counter(
            each.kind for each in closing if each.status == OPEN and each.becomes in ENDED
        ),
    }


def settle_findings(connection: Connection, look: Look) -> None:
    """Store what has become of the open findings asked for: closed if unseen, else as seen."""
    asked = {"finding_ids": list(look.finding_ids)}
    still_open = {finding_id for (finding_id,) in connection.execute(SQL["lock_open"], asked)}
    seen = [each.finding_id for each in look.seen]
    closing = _closing(connection, seen, look.complete, look.gone)
    _close(connection, [each for each in closing if each.finding_id in still_open], run_id=None)
    refined = [each for each in look.seen if each.finding_id in still_open]
    connection.execute(SQL["refine"], _columns(refined))


def read_resolved_between_runs(connection: Connection, event: int) -> Mapping[str, int]:
    """Count by kind the findings that reruns have closed since that event."""
    return dict(connection.execute(SQL["resolved_between_runs"], {"event": event}).fetchall())


def forget_closed(connection: Connection, keep_days: int) -> None:
    """Delete the findings that were closed longer ago, with their history."""
    connection.execute(SQL["forget_closed"], {"keep_days": keep_days})


def _known(connection: Connection, finding_ids: Sequence[str]) -> frozenset[str]:
    rows = connection.execute(SQL["known"], {"seen": list(finding_ids)})
    return frozenset(finding_id for (finding_id,) in rows)


def _closing(
    connection: Connection, seen: Sequence[str], complete: bool, gone: Gone
) -> list[Closing]:
    asked = {
        "seen": list(seen),
        "complete": complete,
        "half_ids": list(gone.half_ids),
        "topics": [partition.topic for partition in gone.starts],
        "partitions": [partition.number for partition in gone.starts],
        "starts": list(gone.starts.values()),
    }
    return [Closing(*row) for row in connection.execute(SQL["closing"], asked)]


def _close(connection: Connection, closing: Sequence[Closing], run_id: str | None) -> None:
    statuses = {each.finding_id: each.becomes for each in closing}
    closed = {"finding_ids": list(statuses), "statuses": list(statuses.values())}
    connection.execute(SQL["close"], {"run_id": run_id, **closed})


def _by_class(closing: Iterable[Closing], statuses: Sequence[str]) -> dict[str, int]:
    counted = (c.finding_class for c in closing if c.status == OPEN and c.becomes in statuses)
    return dict(Counter(counted))


def _columns(findings: Iterable[StoredFinding]) -> dict[str, list[Any]]:
    """Return findings as arrays, each id once: of two with one id the last."""
    rows = {each.finding_id: each for each in findings}.values()
    return {
        "finding_ids": [each.finding_id for each in rows],
        "kinds": [each.kind for each in rows],
        "classes": [each.finding_class for each in rows],
        "severities": [each.severity for each in rows],
        "half_ids": [each.half_id for each in rows],
        "topics": [each.topic for each in rows],
        "details": [Jsonb(dict(each.detail)) for each in rows],
    }
