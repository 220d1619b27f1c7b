"""The rows that a run takes over from the previous run.

Carried rows are joined with the newly read rows as if both had been read together. So every message
is judged by all that was ever seen of it. They contain ids, places and digests, no key, no value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from outbox.reconciliation.checkpoint import CarriedRow
from spark.columns import schemas
from spark.cut.cut_plan import LogCut

COMMIT: Final = "commit"
RECORD: Final = "record"
LISTING: Final = "listing"
JSON_OPTIONS: Final = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedRows:
    """What the previous run left open, as frames with the columns of the newly read rows."""

    spark_session: SparkSession
    rows: Sequence[CarriedRow] = ()
    """Without rows nothing is joined, at no cost."""

    def with_carried(self, fresh: DataFrame, side: str) -> DataFrame:
        """Return the newly read and the carried rows of one side, marked in ``carried``."""
        marked = fresh.withColumn("carried", F.lit(False))
        if not self.rows:
            return marked
        return marked.unionByName(
            self._frame(side, fresh.schema).withColumn("carried", F.lit(True))
        )

    def _frame(self, side: str, schema: StructType) -> DataFrame:
        rows = [each._asdict() for each in self.rows if each.side == side]
        given = schemas.frame_of(self.spark_session, rows, schemas.CARRIED)
        return given.select(F.from_json("facts", schema, JSON_OPTIONS).alias("row")).select("row.*")


def unexpired_records(records: DataFrame, log: LogCut) -> DataFrame:
    """Return the records without the carried ones that the log no longer keeps."""
    rows = [
        {"topic": each.partition.topic, "partition": each.partition.number, "start": each.start}
        for each in log.records
    ]
    starts = schemas.frame_of(records.sparkSession, rows, schemas.STARTS)
    expired = F.col("carried") & (F.col("offset") < F.coalesce("start", F.lit(0)))
    kept = records.join(F.broadcast(starts), ["topic", "partition"], "left").where(~expired)
    return kept.drop("start")
