"""Findings about what makes no progress: undecided halves, silent checks.

Pure. The query decides what is late, from the settings of each group and the time of the snapshot.
This module adds subject and decision.
"""

from __future__ import annotations

from collections.abc import Iterable

from outbox.messages.message_id import message_id_of, shard_in
from outbox.reconciliation.snapshot import Stalled
from spark.compare.decision_table import Decision
from spark.findings.finding import Finding
from spark.findings.finding_class import Cause


def findings(stalled: Iterable[Stalled]) -> tuple[Finding, ...]:
    """Return all these findings."""
    return tuple(map(_finding, stalled))


def _finding(found: Stalled) -> Finding:
    cause = Cause(found.cause)
    if found.half_id is not None and found.nonce is not None:
        message_id = str(message_id_of(found.half_id, found.nonce))
        return Finding(
            cause=cause,
            subject=f"message:{message_id}",
            half_id=found.half_id,
            message_id=message_id,
            topic=found.topic,
            producer_group=found.producer_group,
            shard=shard_in(found.half_id),
            decision=Decision.NONE.value,
            evidence=found.evidence,
        )
    return Finding(
        cause=cause,
        subject=f"group:{found.producer_group}:{cause}",
        producer_group=found.producer_group,
        evidence=found.evidence,
    )
