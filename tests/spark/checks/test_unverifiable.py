"""Whose finding nobody can settle any more: what was retired, unless its commit is still judged."""

from __future__ import annotations

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from outbox.messages.message_id import HalfId
from spark.checks.unverifiable import unjudged_half_ids
from spark.columns import schemas
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
