"""What the next run must look at again."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from outbox.messages.message_id import HalfId
from spark.columns import schemas
from spark.columns.frames import Frames
from spark.columns.segments import JUDGED
from spark.compare.open_items import carried_rows, open_half_ids
from tests.spark.fixtures_markers import ON_SPARK

pytestmark = ON_SPARK


def test_an_open_message_of_a_removed_leaf_is_carried_while_it_is_stored(
    session: SparkSession,
) -> None:
    rows = [{"half_id": each} for each in (1, 2, 30, 40)]
    unsettled = schemas.frame_of(session, rows, schemas.HALF_IDS)
    carried = open_half_ids(unsettled, HalfId(10), [HalfId(40)], {HalfId(2)})
    assert sorted(row["half_id"] for row in carried.collect()) == [2, 30]
    assert open_half_ids(unsettled, HalfId(10), []).count() == 2


def test_an_entry_of_a_manifest_that_each_run_reads_again_is_carried_once(
    session: SparkSession,
) -> None:
    half_ids = schemas.frame_of(session, [{"half_id": 1}], schemas.HALF_IDS)
    entry = half_ids.withColumns({"batch_no": F.lit(7), "status": F.lit("P")})
    frames = Frames(
        manifests=entry,
        listings=entry.unionByName(entry),
        segments=entry,
        batches=entry,
        commits=half_ids.withColumn("standing", F.lit(JUDGED)),
        records=half_ids.withColumn("offset", F.lit(5)),
    )
    carried = carried_rows(half_ids, frames, ()) or ()
    assert sorted(each.side for each in carried) == ["commit", "listing", "record"]
