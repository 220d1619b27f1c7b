"""Which keys are misplaced, on a frame of a few records: growth of a topic is none of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession

from spark.checks import keys, misplaced_keys
from tests.spark.fixtures_markers import ON_SPARK

pytestmark = ON_SPARK

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


def known_of(pairs: DataFrame, known_after: Mapping[str, Mapping[int, int]]) -> DataFrame:
    """Return the records with whether their relay knew all three partitions."""
    places = keys.first_known_places(pairs, {"points": 3}, known_after)
    return keys.with_known_count(pairs, places)


def test_a_key_is_misplaced_only_once_the_last_partition_was_reached(session: SparkSession) -> None:
    pairs = records(
        session, (3, 1, "1.0"), (8, 2, "2.0"), (3, 1, "2.1"), (3, 0, "3.0"), (3, 1, None)
    )
    requested_none = pairs.select("half_id")
    (row,) = misplaced_keys.misplaced_records(
        known_of(pairs, {}), {"points": 3}, lambda topics, half_ids: requested_none
    ).collect()
    assert (row["topic"], row["records"], row["keys"]) == ("points", 1, 1)
    assert [tuple(each) for each in row["first"]] == [(1, 2, 2, 0)]


def test_a_record_whose_producer_requested_a_partition_is_not_misplaced(
    session: SparkSession,
) -> None:
    pairs = records(session, (8, 2, "1.0"), (3, 1, "2.0"), (3, 2, "2.1"))
    free = pairs.where("half_id = 2").select("half_id")
    (row,) = misplaced_keys.misplaced_records(
        known_of(pairs, {}), {"points": 3}, lambda topics, half_ids: free
    ).collect()
    assert [each["half_id"] for each in row["first"]] == [2]


def test_a_relay_knows_all_partitions_after_what_an_earlier_run_has_counted(
    session: SparkSession,
) -> None:
    pairs = records(session, (7, 0, "1.0"), (8, 0, "2.1"))
    for known_after, known in (({}, []), ({"points": {3: 1}}, [8]), ({"points": {4: 1}}, [])):
        rows = keys.keyed_records(known_of(pairs, known_after)).collect()
        assert [row["key_hash"] for row in rows] == known
