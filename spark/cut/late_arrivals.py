"""What turned up since the run before and cannot be judged by what is new alone.

One is a message that an earlier run had missed, and that lies in its topic now. Whatever else a run
reads anew was committed behind all that earlier runs have judged, so within its key it can only lie
behind them. Such a message can lie behind later ones, which are not read again: whether it does,
and whether it names its place, only a run over everything can tell. A repair is not in order and
need not be; a release is, for its key was held with it.

The other is one more record of a message that had not named its place: this one may.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import functions as F  # noqa: N812

from spark.columns import schemas
from spark.columns.frames import Frames
from spark.columns.segments import JUDGED
from spark.cut import carry_over
from spark.cut.checkpoint import Previous
from spark.findings.finding_class import FindingClass

MISSED: Final = "a message that an earlier run had missed was published since"
AGAIN: Final = "a message that had not named its place was published again"


def why_whole(previous: Previous, frames: Frames) -> str | None:
    """Return why everything must be read because of what turned up; None if nothing did."""
    if some_missed(previous, frames):
        return MISSED
    return AGAIN if some_again(previous, frames) else None


def some_again(previous: Previous, frames: Frames) -> bool:
    """Tell whether there is another record in turn of a message with a finding of its place."""
    drifting = FindingClass.POSITION_DRIFT
    found = carry_over.findings_of(previous.carried)
    rows = [{"half_id": f.half_id} for f in found if f.finding_class is drifting]
    if not rows:
        return False
    half_ids = schemas.frame_of(frames.records.sparkSession, rows, schemas.HALF_IDS)
    placed = frames.new_records.where("NOT redriven AND batch_no IS NOT NULL")
    return not placed.join(F.broadcast(half_ids), "half_id", "left_semi").isEmpty()


def some_missed(previous: Previous, frames: Frames) -> bool:
    """Tell whether there is such a message among what the run before has left open.

    It is told by its content, of which its id is a part: no id of a new record is parsed for it.
    """
    if not previous.carried:
        return False
    open_before = F.col("carried") & (F.col("standing") == JUDGED)
    seen = frames.records.where("carried").select("digest")
    missed = frames.commits.where(open_before).select("digest").join(seen, "digest", "left_anti")
    in_turn = frames.new_records.where("NOT redriven").join(
        F.broadcast(frames.batches.where("NOT in_turn")), ["shard", "batch_no"], "left_anti"
    )
    return not in_turn.join(F.broadcast(missed), "digest", "left_semi").isEmpty()
