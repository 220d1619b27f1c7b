"""Findings from run to run, on a connection of the run store: which are new, which are closed how.

One rule decides both the changes that a run reports and the changes that saving it makes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from psycopg.types.json import Jsonb

from outbox.messages.message_id import HalfId
from outbox.postgres.sessions.connections import Connection
from outbox.postgres.sessions.statements import load
from outbox.reconciliation.finding import (
    PERMANENT_CLASSES,
    FindingChanges,
    FindingOutcome,
    StoredFinding,
)
from outbox.reconciliation.run import ExpiredEvidence, RerunResult, StoredRun

SQL: Final = load(__name__)
OPEN: Final = "open"
ENDED: Final = ("resolved", "fixed")


class UnseenFinding(NamedTuple):
    """A finding that a run has not seen again, with its present and its next status."""

    finding_id: str
    kind: str
    finding_class: str
    status: str
    next_status: str | None
    """None: it stays as it is."""
    severity: str
    half_id: HalfId | None
    topic: str | None
    detail: Mapping[str, Any]


def read_changes(
    connection: Connection,
    finding_ids: Sequence[str],
    complete: bool,
    expired_evidence: ExpiredEvidence,
) -> FindingChanges:
    """Return the difference between these open findings and the stored ones."""
    known = _known(connection, finding_ids)
    closed = _closed(connection, finding_ids, complete, expired_evidence)
    statuses = Counter(each.next_status for each in closed if each.status == OPEN)
    return FindingChanges(
        new=len(finding_ids) - len(known),
        resolved=statuses["resolved"],
        fixed=statuses["fixed"],
        unverifiable=statuses["unverifiable"],
        known_ids=known,
        closed_by_class=_by_class(closed, ENDED),
        unverifiable_by_class=_by_class(closed, ("unverifiable",)),
    )


def read_remaining(
    connection: Connection, finding_ids: Sequence[str], expired_evidence: ExpiredEvidence
) -> Sequence[StoredFinding]:
    """Return the findings that stay open though no run can see them; see RunStore.remaining."""
    unseen = _unseen(connection, finding_ids, complete=False, expired=expired_evidence)
    return [
        StoredFinding(
            finding_id=each.finding_id,
            kind=each.kind,
            finding_class=each.finding_class,
            severity=each.severity,
            half_id=each.half_id,
            topic=each.topic,
            detail=each.detail,
        )
        for each in unseen
        if each.next_status is None
    ]


def read_accepted(connection: Connection) -> frozenset[str]:
    """Return the accepted findings; see RunStore.accepted."""
    return frozenset(finding_id for (finding_id,) in connection.execute(SQL["accepted"]))


def read_open_below(connection: Connection, half_id: HalfId) -> Sequence[HalfId]:
    """Return messages with a finding that may exist longer than they; see RunStore.open_below."""
    rows = connection.execute(SQL["open_below"], {"half_id": half_id})
    return [HalfId(found) for (found,) in rows]


def read_missing(connection: Connection, finding_ids: Sequence[str]) -> Sequence[HalfId]:
    """Return the messages that other open findings call missing; see RunStore.missing."""
    rows = connection.execute(SQL["missing"], {"seen": list(finding_ids)})
    return [HalfId(found) for (found,) in rows]


def read_statuses(connection: Connection, run_id: str) -> Sequence[FindingOutcome] | None:
    """Return the current status of a run's findings; see RunStore.statuses."""
    rows = connection.execute(SQL["statuses"], {"run_id": run_id}).fetchall()
    if not rows:
        return None
    return [FindingOutcome(*row) for row in rows if row[0] is not None]


def save_findings(connection: Connection, run: StoredRun) -> None:
    """Store the findings of a run and close the others."""
    seen = [each.finding_id for each in run.findings]
    closed = _closed(connection, seen, run.complete, run.expired_evidence)
    connection.execute(SQL["save_findings"], {"run_id": run.run_id, **_columns(run.findings)})
    _close(connection, closed, run.run_id)


def save_rerun_result(connection: Connection, result: RerunResult) -> None:
    """Store the new status of the given open findings: closed if unseen, else as seen."""
    asked = {"finding_ids": list(result.finding_ids)}
    still_open = {finding_id for (finding_id,) in connection.execute(SQL["lock_open"], asked)}
    seen = [each.finding_id for each in result.seen]
    closed = _closed(connection, seen, result.complete, result.expired_evidence)
    _close(connection, [each for each in closed if each.finding_id in still_open], run_id=None)
    refined = [each for each in result.seen if each.finding_id in still_open]
    connection.execute(SQL["refine"], _columns(refined))


def delete_old_findings(connection: Connection, keep_days: int) -> None:
    """Delete the findings that were closed more than ``keep_days`` ago, with their history."""
    connection.execute(SQL["delete_old_findings"], {"keep_days": keep_days})


def _known(connection: Connection, finding_ids: Sequence[str]) -> frozenset[str]:
    rows = connection.execute(SQL["known"], {"seen": list(finding_ids)})
    return frozenset(finding_id for (finding_id,) in rows)


def _closed(
    connection: Connection, seen: Sequence[str], complete: bool, expired: ExpiredEvidence
) -> list[UnseenFinding]:
    unseen = _unseen(connection, seen, complete=complete, expired=expired)
    return [each for each in unseen if each.next_status is not None]


def _unseen(
    connection: Connection, seen: Sequence[str], *, complete: bool, expired: ExpiredEvidence
) -> list[UnseenFinding]:
    asked = {
        "seen": list(seen),
        "complete": complete,
        "half_ids": list(expired.half_ids),
        "topics": [partition.topic for partition in expired.starts],
        "partitions": [partition.number for partition in expired.starts],
        "starts": list(expired.starts.values()),
        "excluded_topics": list(expired.excluded_topics),
        "unlisted": list(expired.unlisted),
        "excused": list(expired.excused),
        "permanent": sorted(PERMANENT_CLASSES),
    }
    return [UnseenFinding(*row) for row in connection.execute(SQL["unseen"], asked)]


def _close(connection: Connection, closed: Sequence[UnseenFinding], run_id: str | None) -> None:
    statuses = {each.finding_id: each.next_status for each in closed}
    changed = {"finding_ids": list(statuses), "statuses": list(statuses.values())}
    connection.execute(SQL["close"], {"run_id": run_id, **changed})


def _by_class(closed: Iterable[UnseenFinding], statuses: Sequence[str]) -> dict[str, int]:
    counted = (c.finding_class for c in closed if c.status == OPEN and c.next_status in statuses)
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
