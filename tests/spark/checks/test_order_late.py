"""Which records are out of order in a lane that is longer than a task's block of offsets."""

from __future__ import annotations

from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from spark.checks.queries import query
from spark.columns import schemas
from tests.spark.fixtures_markers import ON_SPARK

pytestmark = ON_SPARK

FAR = 3 << 20
"""An offset in a later block."""
MATCHES = pa.schema(
    {
        "topic": pa.string(),
        "partition": pa.int32(),
        "shard": pa.int32(),
        "key_hash": pa.int64(),
        "offset": pa.int64(),
        "rank": pa.int64(),
    }
)


def test_a_record_after_a_later_commit_is_late_in_the_same_block_and_in_a_later_one(
    session: SparkSession,
) -> None:
    in_order = [(0, 4), (1, 9), (FAR + 1, 10)]
    ranks = [*in_order, (2, 5), (FAR, 8)]
    same: dict[str, Any] = {"topic": "points", "partition": 0, "shard": 3, "key_hash": 1}
    rows = [{**same, "offset": offset, "rank": rank} for offset, rank in ranks]
    others = [{**row, "shard": 4, "rank": 1} for row in rows]
    late = query("order_late", matches=schemas.frame_of(session, [*rows, *others], MATCHES))
    assert {(row["shard"], row["offset"]) for row in late.collect()} == {(3, 2), (3, FAR)}
