"""What went before a run could settle it: its findings are unverifiable from then on."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pyspark.sql import DataFrame

from outbox.messages.message_id import HalfId
from outbox.reconciliation.ports import RunStore
from outbox.reconciliation.stored_run import Gone
from spark.columns import schemas
from spark.compare.diagnosis import Judgement


def unverifiable_of(
    run_store: RunStore, commits: DataFrame, judgement: Judgement, expired: Sequence[HalfId]
) -> Gone:
    """Return what this run shows to be beyond any run: ``expired``, and what was retired unjudged.

    A message whose half was retired is judged all the same while its commit is carried; then its
    finding is open, or has ended.
    """
    retired = run_store.open_below(judgement.retired_below)
    return Gone(half_ids=[*expired, *unjudged(retired, commits)], starts=judgement.starts)


def unjudged(half_ids: Collection[HalfId], commits: DataFrame) -> list[HalfId]:
    """Return those of the messages that are not among the commits."""
    if not half_ids:
        return []
    rows = [{"half_id": each} for each in half_ids]
    asked = schemas.frame_of(commits.sparkSession, rows, schemas.HALF_IDS)
    left = asked.join(commits.select("half_id"), "half_id", "left_anti").collect()
    return [HalfId(row["half_id"]) for row in left]
