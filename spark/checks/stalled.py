"""Findings about what makes no progress: undecided halves, silent checks, open transactions.

Pure. The query decides what is late, from the settings of each group and the time of the snapshot.
This module adds class, subject and evidence.
"""

from __future__ import annotations

from outbox.messages.message_id import Nonce, message_id_of, shard_in
from outbox.reconciliation.stalled import (
    ParkedGroup,
    SilentGroup,
    Stalled,
    StalledHalf,
    StalledTransaction,
)
from spark.compare.decision_table import Decision
from spark.findings.finding import Finding
from spark.findings.finding_class import FindingClass


def findings(stalled: Stalled) -> tuple[Finding, ...]:
    """Return all these findings."""
    return (
        *map(_of_half, stalled.halves),
        *map(_of_silent, stalled.silent),
        *map(_of_parked, stalled.parked),
        *map(_of_transaction, stalled.transactions),
    )


def _of_half(half: StalledHalf) -> Finding:
    message_id = str(message_id_of(half.half_id, Nonce(half.nonce)))
    return Finding(
        finding_class=FindingClass.STUCK_HALF,
        subject=f"message:{message_id}",
        half_id=half.half_id,
        message_id=message_id,
        topic=half.topic,
        producer_group=half.producer_group,
        shard=shard_in(half.half_id),
        decision=Decision.NONE.value,
        detail={
            "end_demanded_by": half.reason,
            "end_due_at": half.due_at.isoformat(),
            "checks_spent": half.check_count,
            "last_outcome": half.last_outcome,
        },
    )


def _of_silent(group: SilentGroup) -> Finding:
    heartbeat = group.last_heartbeat_at
    return Finding(
        finding_class=FindingClass.CHECK_SILENT,
        subject=f"group:{group.producer_group}:CHECK_SILENT",
        producer_group=group.producer_group,
        detail={
            "due_since": group.due_since.isoformat(),
            "positions": dict(group.positions),
            "last_heartbeat_at": heartbeat.isoformat() if heartbeat else None,
        },
    )


def _of_parked(group: ParkedGroup) -> Finding:
    return Finding(
        finding_class=FindingClass.PARKED,
        subject=f"group:{group.producer_group}:PARKED",
        producer_group=group.producer_group,
        detail={
            "halves": group.halves,
            "oldest_parked_at": group.oldest_parked_at.isoformat(),
            "reasons": dict(group.reasons),
        },
    )


def _of_transaction(open_one: StalledTransaction) -> Finding:
    query_start = open_one.query_start
    return Finding(
        finding_class=FindingClass.XMIN_STALLED,
        subject="source:xmin",
        detail={
            "pid": open_one.pid,
            "application": open_one.application,
            "state": open_one.state,
            "begun_at": open_one.begun_at.isoformat(),
            "query_start": query_start.isoformat() if query_start else None,
        },
    )
