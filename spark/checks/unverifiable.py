"""Messages whose evidence expired before a run settled them: their findings become unverifiable."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pyspark.sql import DataFrame

from outbox.messages.message_id import HalfId
from outbox.reconciliation.log import Partition
from outbox.reconciliation.ports import RunStore
from outbox.reconciliation.run import ExpiredEvidence
from spark.columns import schemas


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


def unjudged_half_ids(half_ids: Collection[HalfId], commits: DataFrame) -> list[HalfId]:
    """Return the messages that are not among the commits."""
    if not half_ids:
        return []
    rows = [{"half_id": each} for each in half_ids]
    asked = schemas.frame_of(commits.sparkSession, rows, schemas.HALF_IDS)
    left = asked.join(commits.select("half_id"), "half_id", "left_anti").collect()
    return [HalfId(row["half_id"]) for row in left]
