"""Whose finding a run cannot settle: retired before it was judged, or older than the manifests."""

from __future__ import annotations

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from outbox.messages.message_id import HalfId
from spark.checks.unverifiable import unjudged_half_ids, unlisted_half_ids
from spark.columns import schemas
from spark.columns.frames import Frames
from spark.columns.segments import BASELINE, JUDGED
from tests.spark.fixtures_markers import ON_SPARK

pytestmark = ON_SPARK

COMMITS = pa.schema([("half_id", pa.int64()), ("shard", pa.int32())])


def test_a_retired_message_is_unverifiable_unless_this_run_judges_its_commit(
    session: SparkSession,
) -> None:
    rows = [{"half_id": half_id, "shard": 5} for half_id in (7, 8)]
    commits = schemas.frame_of(session, rows, COMMITS)
    assert sorted(unjudged_half_ids([HalfId(6), HalfId(7), HalfId(9)], commits)) == [6, 9]
    assert unjudged_half_ids([HalfId(8)], commits) == []
    assert unjudged_half_ids([], commits) == []


def test_a_missing_message_is_not_judged_if_it_is_older_than_the_manifests_and_has_no_record(
    session: SparkSession,
) -> None:
    rows = [(1, BASELINE), (2, BASELINE), (4, JUDGED), (5, BASELINE)]
    commits = session.createDataFrame(rows, "half_id bigint, standing string")
    records = session.createDataFrame([(2,)], "half_id bigint")
    frames = Frames(
        manifests=records,
        listings=records,
        segments=records,
        batches=records,
        commits=commits,
        records=records,
    )
    assert unlisted_half_ids([HalfId(each) for each in (1, 2, 4, 9)], frames) == {1}
    assert unlisted_half_ids([], frames) == set()
