"""What no run can verify any more: its findings become unverifiable, or stay open for good."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pyspark.sql import DataFrame

from outbox.messages.message_id import HalfId
from outbox.reconciliation.log import Partition
from outbox.reconciliation.ports import RunStore
from outbox.reconciliation.run import ExpiredEvidence
from spark.columns import schemas
from spark.findings.finding import Finding
from spark.findings.ledger import Ledger
from spark.findings.stored_finding import remaining_finding


def unverifiable_of(
    run_store: RunStore,
    commits: DataFrame,
    retired_below: HalfId,
    expired: Sequence[HalfId],
    starts: Mapping[Partition, int],
) -> ExpiredEvidence:
    """Return the messages that no run can verify any more: expired, or retired before judged.

    A message whose half was retired is still judged while its commit is carried; its finding is
    then open or closed.
    """
    retired = run_store.open_below(retired_below)
    return ExpiredEvidence(half_ids=[*expired, *unjudged_half_ids(retired, commits)], starts=starts)


def remaining_findings(run_store: RunStore, ledger: Ledger) -> list[Finding]:
    """Return what earlier runs have seen in the log and no run can see again: it is still open."""
    remaining = run_store.remaining(sorted(ledger.entered), ledger.expired_evidence)
    return [remaining_finding(each) for each in remaining]


def unjudged_half_ids(half_ids: Collection[HalfId], commits: DataFrame) -> list[HalfId]:
    """Return the messages that are not among the commits."""
    if not half_ids:
        return []
    rows = [{"half_id": each} for each in half_ids]
    asked = schemas.frame_of(commits.sparkSession, rows, schemas.HALF_IDS)
    left = asked.join(commits.select("half_id"), "half_id", "left_anti").collect()
    return [HalfId(row["half_id"]) for row in left]
