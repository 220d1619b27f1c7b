"""Findings from run to run: which are new, which are closed how, and which stay open unseen.

One rule decides both the changes that a run reports and the changes that saving it makes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict
from typing import Any, Final, NamedTuple

from msgspec import convert
from psycopg.rows import dict_row
from psycopg.types.json import Json

from outbox.messages.message_id import HalfId
from outbox.postgres.reconciliation.audit_session import audit_session
from outbox.postgres.sessions.connections import Connection
from outbox.postgres.sessions.statements import load
from outbox.reconciliation.finding import (
    PERMANENT_CAUSES,
    RENEWED_CAUSES,
    FindingChanges,
    StoredFinding,
)
from outbox.reconciliation.run import ExpiredEvidence, StoredRun

SQL: Final = load(__name__)
KEEP_DAYS: Final = 90
"""Days for which closed findings are kept."""
OPEN: Final = "open"
ENDED: Final = ("resolved", "fixed")


class Unseen(NamedTuple):
    """A stored finding that a run has not seen again, with its next status."""

    finding: StoredFinding
    next_status: str | None
    """None: it stays as it is."""


class PostgresFindings:
    """Reads what the stored runs have found; one connection per call.

    Every method raises DatabaseUnavailable.
    """

    def __init__(self, database_url: str) -> None:
        self._database_url = database_url

    def changes(
        self, finding_ids: Sequence[str], complete: bool, expired_evidence: ExpiredEvidence
    ) -> FindingChanges:
        """Return what saving these open findings would change."""
        with audit_session(self._database_url) as connection:
            rows = connection.execute(SQL["known"], {"seen": list(finding_ids)})
            known = frozenset(finding_id for (finding_id,) in rows)
            unseen = _unseen(connection, finding_ids, complete, expired_evidence)
        statuses = Counter(each.next_status for each in unseen if each.finding.status == OPEN)
        return FindingChanges(
            new=len(finding_ids) - len(known),
            resolved=statuses["resolved"],
            fixed=statuses["fixed"],
            unverifiable=statuses["unverifiable"],
            known_ids=known,
            closed_by_cause=_by_cause(unseen, ENDED),
            unverifiable_by_cause=_by_cause(unseen, ("unverifiable",)),
        )

    def remaining(
        self, finding_ids: Sequence[str], expired_evidence: ExpiredEvidence
    ) -> Sequence[StoredFinding]:
        """Return the open or accepted findings besides these that stay open though unseen.

        Either the run has read only what is new. Or their topic is excluded from it. Or their
        message was missing, and is older than the manifests. Or they are faults that an earlier run
        has seen in the log: their record has expired or their cause is permanent, and their
        message, if they have one, is still stored.
        Those stay open until an operator settles them.
        """
        with audit_session(self._database_url) as connection:
            unseen = _unseen(connection, finding_ids, False, expired_evidence)
        return [each.finding for each in unseen if each.next_status is None]

    def open_retired(self, half_id: HalfId, leaves: Collection[int]) -> Sequence[HalfId]:
        """Return the messages with an open or accepted finding whose half was retired.

        All leaves below ``half_id`` were removed, and these ``leaves`` above it.
        """
        return self._ids("open_retired", half_id=half_id, leaves=list(leaves))

    def missing(self, finding_ids: Sequence[str]) -> Sequence[HalfId]:
        """Return the messages with another open or accepted finding of the kind missing."""
        return self._ids("missing", seen=list(finding_ids))

    def accepted(self) -> frozenset[str]:
        """Return the ids of the findings that an operator accepts for now; they do not count."""
        return frozenset(self._ids("accepted"))

    def _ids(self, name: str, **asked: Any) -> list[Any]:
        with audit_session(self._database_url) as connection:
            return [found for (found,) in connection.execute(SQL[name], asked)]


def save_findings(connection: Connection, run: StoredRun) -> None:
    """Store the findings of a run and close the others; delete those closed for KEEP_DAYS."""
    seen = [each.finding_id for each in run.findings]
    unseen = _unseen(connection, seen, run.complete, run.expired_evidence)
    _save(connection, run.findings, run.run_id)
    _close(connection, unseen, run.run_id)
    connection.execute(SQL["delete_old_findings"], {"keep_days": KEEP_DAYS})


def _unseen(
    connection: Connection, seen: Sequence[str], complete: bool, expired: ExpiredEvidence
) -> list[Unseen]:
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
        "permanent": list(PERMANENT_CAUSES),
        "continued": expired.continued,
        "renewed": list(RENEWED_CAUSES),
    }
    with connection.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(SQL["unseen"], asked).fetchall()
    return [Unseen(convert(row, StoredFinding), row["next_status"]) for row in rows]


def _close(connection: Connection, unseen: Sequence[Unseen], run_id: str) -> None:
    statuses = {each.finding.finding_id: each.next_status for each in unseen if each.next_status}
    changed = {"finding_ids": list(statuses), "statuses": list(statuses.values())}
    connection.execute(SQL["close"], {"run_id": run_id, **changed})


def _by_cause(unseen: Iterable[Unseen], statuses: Sequence[str]) -> Counter[str]:
    return Counter(
        finding.cause
        for finding, next_status in unseen
        if finding.status == OPEN and next_status in statuses
    )


def _save(connection: Connection, findings: Iterable[StoredFinding], run_id: str) -> None:
    """Store findings, each id once: of two with one id the last."""
    rows = {each.finding_id: asdict(each) for each in findings}.values()
    connection.execute(SQL["save_findings"], {"run_id": run_id, "seen": Json(list(rows))})
