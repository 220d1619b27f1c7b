"""The findings that earlier runs left open, and whether they still stand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from outbox.reconciliation.run import ExpiredEvidence
from outbox.reconciliation.snapshot import KnownHalf, RecordHold
from spark.compare.evidence import chunks
from spark.findings.finding import UNDECIDED, Finding
from spark.findings.finding_class import Cause
from spark.findings.stored_finding import remaining_finding

if TYPE_CHECKING:
    from outbox.postgres.reconciliation.run_store import PostgresRunStore
    from outbox.postgres.reconciliation.source import PostgresSnapshot

HELD: Final = (Cause.UNPUBLISHED_HELD, Cause.UNPUBLISHED_GIVEN_UP)
MAY_CHANGE: Final = (*HELD, Cause.ORPHAN_UNDECIDED)
"""Causes that PostgreSQL alone can change; anything else needs a new manifest or record."""


def open_findings(run_store: PostgresRunStore) -> tuple[Finding, ...]:
    """Return the findings of earlier runs that are open or accepted."""
    return tuple(map(remaining_finding, run_store.remaining((), ExpiredEvidence(continued=True))))


def have_changed(findings: Iterable[Finding], snapshot: PostgresSnapshot) -> bool:
    """Return whether a message with such a finding was decided, dropped or released since."""
    asked = {each.half_id: each for each in findings if each.cause in MAY_CHANGE and each.half_id}
    for half_ids in chunks(iter(asked)):
        halves, holds = snapshot.halves(half_ids), snapshot.held_records(half_ids)
        if any(_has_changed(asked[i], halves.get(i), holds.get(i)) for i in half_ids):
            return True
    return False


def _has_changed(finding: Finding, known: KnownHalf | None, hold: RecordHold | None) -> bool:
    if finding.cause not in HELD:
        return known is not None and (known.decision or UNDECIDED) != finding.decision
    dropped = finding.cause is Cause.UNPUBLISHED_GIVEN_UP
    return hold is None or hold.released or hold.dropped != dropped
