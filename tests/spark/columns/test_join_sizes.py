"""A frame that grows with the installation is broadcast only while it is small."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark.columns.commit_rank import with_batches
from spark.columns.segments import open_commits
from spark.columns.staging import stage_frame
from spark.compare.bucket_checksums import records_in_buckets
from tests.spark.fixtures_markers import ON_SPARK

pytestmark = [*ON_SPARK, pytest.mark.deep]

FEW: Final = 10
MANY: Final = 2_000_000
"""As segments of messages that were ended one by one; more than Spark broadcasts by itself."""
HASH: Final = "xxhash64(id)"
COMMITS: Final = ("0 shard", f"{HASH} xid", "array(id) half_ids", "array(id) content_digests")
RECORDS: Final = ("0 shard", f"{HASH} batch_no", "0 index", f"{HASH} slot")
SEGMENTS: Final = (
    *("0 shard", f"{HASH} xid", "current_timestamp() committed_at", "id rank", "0 skip"),
    *("1 size", "'judged' standing", "id batch_no", "0L index"),
)
BATCHES: Final = (
    *("0 shard", f"{HASH} batch_no", f"{HASH} from_rank", f"{HASH} to_rank"),
    *("true in_turn", "true whole"),
)
BUCKETS: Final = ("0 shard", f"{HASH} bucket")
Join = Callable[[DataFrame, DataFrame], DataFrame]


@pytest.mark.parametrize(
    ("left", "right", "join"),
    [
        (COMMITS, SEGMENTS, open_commits),
        (RECORDS, BATCHES, with_batches),
        (RECORDS, BUCKETS, lambda records, buckets: records_in_buckets(records, buckets, 12)),
    ],
    ids=["segments", "batches", "buckets"],
)
def test_a_frame_that_does_not_fit_into_the_driver_is_not_broadcast(
    session: SparkSession, tmp_path: Path, left: tuple[str, ...], right: tuple[str, ...], join: Join
) -> None:
    broadcast = {}
    records = stage_frame(session.range(MANY).selectExpr(*left), f"{tmp_path}/left")
    for rows in (FEW, MANY):
        joined = join(
            records, stage_frame(session.range(rows).selectExpr(*right), f"{tmp_path}/{rows}")
        )
        broadcast[rows] = "BroadcastExchange" in plan_of(joined)
        assert joined.agg(F.count("*")).collect()
    assert broadcast == {FEW: True, MANY: False}


def plan_of(frame: DataFrame) -> str:
    """Return the plan that Spark begins with."""
    return str(frame._jdf.queryExecution().executedPlan().toString())
