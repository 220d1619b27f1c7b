"""A message that an earlier run had missed, and that lies in its topic now.

Whatever else a run reads anew was committed behind all that earlier runs have judged, so within its
key it can only lie behind them. Such a message can lie behind later ones, which are not read again:
whether it does, and whether it names its place, only a run over everything can tell. A repair is
not in order and need not be; a release is, for its key was held with it.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import functions as F  # noqa: N812

from spark.chain import Previous
from spark.frames import Frames
from spark.stretches import JUDGED

REASON: Final = "a message that an earlier run had missed was published since"


def some_turned_up(previous: Previous, frames: Frames) -> bool:
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
