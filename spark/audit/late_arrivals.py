"""Late arrivals: new records that cannot be judged by the new rows alone.

A message that an earlier run had missed is now in its topic. All other new rows were committed
after everything that earlier runs have judged, so within their key they come after it. A late
message can come after later messages of its key, which are not read again. Only a full read can
show whether it does, and whether it names its place. A repair need not be in order. A release is in
order, because its key was held with it.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import functions as F

from spark.columns.frames import Frames
from spark.columns.segments import JUDGED
from spark.cut.checkpoint import Previous

LATE: Final = "a message that an earlier run had missed was published since"


def full_read_reason(previous: Previous, frames: Frames) -> str | None:
    """Return why late arrivals make a full read necessary; None if there are none."""
    return LATE if has_late_message(previous, frames) else None


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
