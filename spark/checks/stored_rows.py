"""Compares PostgreSQL with itself: each commit with the rows of its decision and its half message.

These rows are never changed. Records are compared with the commit log, so nobody else sees that one
of them was. All stored digests are compared here; the contents of a sample in `sample`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from outbox.messages.message import Resolution
from outbox.messages.record import digest_of
from outbox.reconciliation.snapshot import ChangedCommit, KnownHalf
from spark.checks.unlogged_commits import looked_back
from spark.cut.checkpoint import Previous
from spark.findings.finding import Finding
from spark.findings.finding_class import Cause

if TYPE_CHECKING:
    from outbox.postgres.reconciliation.source import PostgresSnapshot

NO_DECISION: Final = "has no row of the message"
NO_HALF: Final = "has no row of the message that names a known group and topic"
OTHER_DIGEST: Final = "has another content_digest than commit_log"
OTHER_CONTENT: Final = "has other content than its content_digest says"


def findings(snapshot: PostgresSnapshot, previous: Previous | None) -> tuple[Finding, ...]:
    """Return a finding for each commit that the stored rows contradict, at most 1 000.

    ``previous`` is the cut that the run continues; None looks at all commits.
    """
    changed = snapshot.changed(*looked_back(previous))
    halves = snapshot.halves([each.half_id for each in changed])
    return tuple(_finding(each, halves.get(each.half_id)) for each in changed)


def content_finding(known: KnownHalf, position: Iterable[int]) -> Finding | None:
    """Return a finding if the stored content has another digest than when it was prepared."""
    half = known.half
    actual = digest_of(half.half_id, half.nonce, half.message)
    if actual == half.content_digest:
        return None
    return Finding.about_message(
        Cause.INCONSISTENT_ROW,
        half.half_id,
        known,
        subject=f"stored:{half.half_id}",
        position=tuple(position),
        decision=Resolution.COMMIT,
        expected_digest=half.content_digest,
        actual_digest=actual,
        evidence={"half_message": OTHER_CONTENT},
    )


def _finding(changed: ChangedCommit, known: KnownHalf | None) -> Finding:
    return Finding.about_message(
        Cause.INCONSISTENT_ROW,
        changed.half_id,
        known,
        subject=f"stored:{changed.half_id}",
        position=(changed.xid, changed.n),
        decision=Resolution.COMMIT,
        decided_at=changed.committed_at,
        expected_digest=changed.digest,
        actual_digest=changed.half_digest,
        evidence=dict(_differences(changed)),
    )


def _differences(changed: ChangedCommit) -> Iterator[tuple[str, str]]:
    """Yield each table that contradicts the commit log, and how."""
    if changed.decision is None:
        yield "op_message", NO_DECISION
    elif changed.decision is not Resolution.COMMIT:
        yield "op_message", f"has the decision {changed.decision}"
    elif changed.decided_in != changed.xid:
        yield "op_message", f"has the transaction {changed.decided_in}"
    if changed.half_digest is None:
        yield "half_message", NO_HALF
    elif changed.half_digest != changed.digest:
        yield "half_message", OTHER_DIGEST
