"""Which messages of a compacted topic need no record: a later one of their key replaces them.

Only the last committed message of each key is judged; PostgreSQL knows it, whatever the log still
has. A tombstone may be gone too, if no record of its key is left.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from spark.columns.frames import Frames
from spark.columns.segments import IN_FLIGHT


def superseded(suspects: DataFrame, frames: Frames, keyed: DataFrame) -> DataFrame:
    """Return the half ids of suspects without a record that compaction explains.

    ``keyed`` are the stored messages of the compacted topics (``Sources.read_keys``).
    """
    of_key = Window.partitionBy("topic", "key_hash")
    committed = frames.commits.where(F.col("standing") != IN_FLIGHT).select("half_id", "xid", "n")
    placed = keyed.join(committed, "half_id").withColumn("at", F.struct("xid", "n"))
    missing = suspects.where("copies + ahead = 0").select("half_id")
    ranked = placed.withColumn("last", F.max("at").over(of_key))
    asked = ranked.join(missing, "half_id", "left_semi")
    left = frames.records.select("topic", "key_hash", F.lit(True).alias("left")).distinct()
    gone = F.col("tombstone") & F.col("left").isNull()
    joined = asked.join(left, ["topic", "key_hash"], "left")
    return joined.where((F.col("at") < F.col("last")) | gone).select("half_id")
