"""What the next run must look at again."""

from __future__ import annotations

from pyspark.sql import SparkSession

from outbox.messages.message_id import HalfId
from spark.columns import schemas
from spark.compare.open_items import open_half_ids
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
