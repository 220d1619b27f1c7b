"""Which messages of a compacted topic need no record: a later one of their key replaces them.

Only the last committed message of each key is judged; PostgreSQL knows it, whatever the log still
has. A tombstone may be gone too, if no record of its key is left.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from spark.columns.frames import Frames
from spark.columns.segments import IN_FLIGHT


def superseded(suspects: DataFrame, frames: Frames, keyed: DataFrame) -> DataFrame:
    """Return the half ids of suspects without a record that compaction explains.

    ``keyed`` are the stored messages of the compacted topics (``Sources.read_keys``).
    """
    committed = frames.commits.where(f"standing <> '{IN_FLIGHT}'").select("half_id", "xid", "n")
    ranked = keyed.join(committed, "half_id").selectExpr(
        *("half_id", "topic", "key_hash", "tombstone"),
        """struct(xid, n) < max(struct(xid, n)) OVER (
            PARTITION BY topic, key_hash
        ) AS replaced""",
    )
    missing = suspects.where("copies + ahead = 0").select("half_id")
    seen = frames.records.selectExpr("topic", "key_hash", "true AS seen").distinct()
    return (
        ranked.join(missing, "half_id", "left_semi")
        .join(seen, ["topic", "key_hash"], "left")
        .where("replaced OR tombstone AND seen IS NULL")
        .select("half_id")
    )
