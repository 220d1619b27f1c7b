"""Whose finding nobody can settle any more: what was retired, unless its commit is still judged."""

from __future__ import annotations

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from outbox.messages.message_id import HalfId
from spark.columns import schemas
from spark.cut.unverifiable import unjudged
from tests.spark.fixtures_markers import ON_SPARK

pytestmark = ON_SPARK

COMMITS = pa.schema([("half_id", pa.int64()), ("shard", pa.int32())])


def test_what_was_retired_is_gone_unless_its_commit_is_judged_in_this_run(
    session: SparkSession,
) -> None:
    rows = [{"half_id": half_id, "shard": 5} for half_id in (7, 8)]
    commits = schemas.frame_of(session, rows, COMMITS)
    assert sorted(unjudged([HalfId(6), HalfId(7), HalfId(9)], commits)) == [6, 9]
    assert unjudged([HalfId(8)], commits) == []
    assert unjudged([], commits) == []
