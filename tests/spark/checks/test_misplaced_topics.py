"""Which keys are misplaced, on a frame of a few records: growth of a topic is none of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession

from spark.checks import misplaced_keys
from tests.spark.fixtures_markers import ON_SPARK

pytestmark = ON_SPARK
NOTHING: Mapping[str, Mapping[int, int]] = {}

PAIRS = pa.schema(
    [
        *(
            ("half_id", pa.int64()),
            ("topic", pa.string()),
            ("partition", pa.int32()),
            ("offset", pa.int64()),
        ),
        *(("key_hash", pa.int64()), ("home", pa.int32()), ("named_shard", pa.int32())),
        *(("batch_no", pa.int64()), ("index", pa.int32())),
    ]
)


def records(session: SparkSession, *rows: tuple[int, int, str | None]) -> DataFrame:
    """Return records of key, partition and ``batch.index`` in a topic of three partitions."""
    filled: list[dict[str, Any]] = []
    for half_id, (key, partition, place) in enumerate(rows):
        batch, index = map(int, place.split(".")) if place else (None, None)
        row = {"half_id": half_id, "topic": "points", "partition": partition, "offset": half_id}
        row |= {"key_hash": key, "home": key}
        filled.append(
            {**row, "named_shard": 3 if place else None, "batch_no": batch} | {"index": index}
        )
    return session.createDataFrame(pa.Table.from_pylist(filled, schema=PAIRS))


def misplaced(
    pairs: DataFrame,
    unrequested: DataFrame | None = None,
    known_after: Mapping[str, Mapping[int, int]] = NOTHING,
) -> list[Any]:
    """Return the topics with misplaced keys; no producer requested a partition unless said so."""
    free = pairs.select("half_id") if unrequested is None else unrequested
    return misplaced_keys.misplaced_topics(
        pairs, {"points": 3}, known_after, lambda topics, half_ids: free
    )


def test_a_key_is_misplaced_only_once_the_last_partition_was_reached(session: SparkSession) -> None:
    pairs = records(
        session, (3, 1, "1.0"), (8, 2, "2.0"), (3, 1, "2.1"), (3, 0, "3.0"), (3, 1, None)
    )
    (row,) = misplaced(pairs)
    assert (row["topic"], row["records"], row["keys"]) == ("points", 1, 1)
    assert [tuple(each) for each in row["first"]] == [(1, 2, 2, 0)]


def test_a_record_whose_producer_requested_a_partition_is_not_misplaced(
    session: SparkSession,
) -> None:
    pairs = records(session, (8, 2, "1.0"), (3, 1, "2.0"), (3, 2, "2.1"))
    (row,) = misplaced(pairs, pairs.where("half_id = 2").select("half_id"))
    assert [each["half_id"] for each in row["first"]] == [2]


def test_a_relay_knows_all_partitions_after_what_an_earlier_run_has_counted(
    session: SparkSession,
) -> None:
    pairs = records(session, (7, 0, "1.0"), (8, 0, "2.1"))
    assert (
        misplaced(pairs, known_after={}) == misplaced(pairs, known_after={"points": {4: 1}}) == []
    )
    (row,) = misplaced(pairs, known_after={"points": {3: 1}})
    assert [each["half_id"] for each in row["first"]] == [1]
