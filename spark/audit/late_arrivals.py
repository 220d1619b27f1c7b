"""Late arrivals: new records that cannot be judged by the new rows alone.

There are two cases:

- A message that an earlier run had missed is now in its topic. All other new rows were committed
  after everything that earlier runs have judged, so within their key they come after it. A late
  message can come after later messages of its key, which are not read again. Only a full read can
  show whether it does, and whether it names its place. A repair need not be in order. A release is
  in order, because its key was held with it.
- There is one more record of a message that had not named its place; the new record may name it.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import functions as F

from spark.columns import schemas
from spark.columns.frames import Frames
from spark.columns.segments import JUDGED
from spark.compare import open_items
from spark.cut.checkpoint import Previous
from spark.findings.finding_class import FindingClass

LATE: Final = "a message that an earlier run had missed was published since"
REPUBLISHED: Final = "a message that had not named its place was published again"


def full_read_reason(previous: Previous, frames: Frames) -> str | None:
    """Return why late arrivals make a full read necessary; None if there are none."""
    if has_late_message(previous, frames):
        return LATE
    return REPUBLISHED if has_republished_message(previous, frames) else None


def has_republished_message(previous: Previous, frames: Frames) -> bool:
    """Whether there is another record in turn of a message with a finding about its place."""
    drifting = FindingClass.POSITION_DRIFT
    found = open_items.carried_findings(previous.carried)
    rows = [{"half_id": f.half_id} for f in found if f.finding_class is drifting]
    if not rows:
        return False
    half_ids = schemas.frame_of(frames.records.sparkSession, rows, schemas.HALF_IDS)
    placed = frames.new_records.where("NOT redriven AND batch_no IS NOT NULL")
    return not placed.join(F.broadcast(half_ids), "half_id", "left_semi").isEmpty()


def has_late_message(previous: Previous, frames: Frames) -> bool:
    """Whether a message that the previous run left open without a record has one now.

    It is recognized by its digest, which covers its id, so no id of a new record is parsed.
    """
    if not previous.carried:
        return False
    open_before = F.col("carried") & (F.col("standing") == JUDGED)
    seen = frames.records.where("carried").select("digest")
    missed = frames.commits.where(open_before).select("digest").join(seen, "digest", "left_anti")
    in_turn = frames.new_records.where("NOT redriven").join(
        frames.batches.where("NOT in_turn"), ["shard", "batch_no"], "left_anti"
    )
    return not in_turn.join(F.broadcast(missed), "digest", "left_semi").isEmpty()
