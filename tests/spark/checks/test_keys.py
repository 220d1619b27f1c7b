"""Which keys are split, on a frame of a few records: growth of a topic is none of it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession

from spark.checks import keys
from tests.spark.fixtures_markers import ON_SPARK

pytestmark = ON_SPARK

PAIRS = pa.schema(
    [
        *(("half_id", pa.int64()), ("topic", pa.string()), ("partition", pa.int32())),
        *(("key_hash", pa.int64()), ("named_shard", pa.int32())),
        *(("batch_no", pa.int64()), ("index", pa.int32())),
    ]
)


def records(session: SparkSession, *rows: tuple[int, int, str | None]) -> DataFrame:
    """Return records of key, partition and ``batch.index`` in a topic of three partitions."""
    filled: list[dict[str, Any]] = []
    for half_id, (key, partition, place) in enumerate(rows):
        batch, index = map(int, place.split(".")) if place else (None, None)
        row = {"half_id": half_id, "topic": "points", "partition": partition, "key_hash": key}
        filled.append(
            {**row, "named_shard": 3 if place else None, "batch_no": batch} | {"index": index}
        )
    return session.createDataFrame(pa.Table.from_pylist(filled, schema=PAIRS))


def test_a_key_is_split_only_once_the_last_partition_was_reached(session: SparkSession) -> None:
    moved_by_growth, split = 7, 9
    pairs = records(
        session,
        (moved_by_growth, 0, "1.0"),
        (8, 1, "2.0"),
        (moved_by_growth, 1, "2.1"),
        (split, 2, "3.1"),
        (moved_by_growth, 1, "4.0"),
        (split, 0, "4.1"),
        (moved_by_growth, 0, None),
    )
    known = keys.with_known_count(pairs, keys.first_known_places(pairs, {"points": 3}))
    keyed = keys.keyed_records(known)
    spread = keys.spread_keys(keyed)
    (row,) = keys.split_keys(keyed, spread, pairs.select("half_id")).collect()
    finding = keys.split_finding(row)
    assert finding.detail["keys"] == 1
    (shown,) = finding.detail["shown"]
    assert shown == {
        "key_hash": f"{split:016x}",
        "messages_by_partition": {"0": 1, "2": 1},
    }
    asked = pairs.where("partition = 2").select("half_id")
    assert keys.split_keys(keyed, spread, asked).isEmpty()


def test_a_key_is_split_without_the_last_partition_if_an_earlier_run_has_counted_them(
    session: SparkSession,
) -> None:
    pairs = records(session, (7, 0, "1.0"), (7, 1, "2.0"), (8, 0, "2.1"), (8, 1, "3.0"))
    for known_after, split in (({}, []), ({"points": {3: 1}}, [8]), ({"points": {4: 1}}, [])):
        places = keys.first_known_places(pairs, {"points": 3}, known_after)
        keyed = keys.keyed_records(keys.with_known_count(pairs, places))
        assert [row["key_hash"] for row in keys.spread_keys(keyed).collect()] == split
