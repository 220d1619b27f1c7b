"""The rows that a run takes over from the previous run.

Carried rows are joined with the newly read rows as if both had been read together. So every message
is judged by all that was ever seen of it. They contain ids, places and digests, no key, no value.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from outbox.reconciliation.log import Partition
from outbox.reconciliation.run import CarriedRow
from spark.columns import schemas
from spark.cut.checkpoint import Previous

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


def unexpired_rows(previous: Previous, starts: Mapping[Partition, int]) -> tuple[CarriedRow, ...]:
    """Return the carried rows without the records that the log no longer has.

    A record that was ahead of the last cut is kept: it has been read, and no run has judged it.
    """
    return tuple(
        r for r in previous.carried if not is_expired(r, starts) or _was_ahead(r, previous)
    )


def expired_ids(rows: Iterable[CarriedRow], starts: Mapping[Partition, int]) -> frozenset[str]:
    """Return the message ids of the carried records that the log no longer has."""
    return frozenset(
        json.loads(each.facts)["message_id"] for each in rows if is_expired(each, starts)
    )


def is_expired(row: CarriedRow, starts: Mapping[Partition, int]) -> bool:
    """Whether a carried row is a record that the log no longer has."""
    if row.side != RECORD:
        return False
    facts = json.loads(row.facts)
    start = starts.get(Partition(facts["topic"], facts["partition"]), 0)
    return bool(facts["offset"] < start)


def _was_ahead(row: CarriedRow, previous: Previous) -> bool:
    facts = json.loads(row.facts)
    cut = previous.shards.get(facts.get("shard"))
    return facts.get("batch_no") is not None and (cut is None or facts["batch_no"] > cut.batch_no)
