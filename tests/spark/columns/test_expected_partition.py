"""Kafka's own function, called from Spark's generated code, beside our own of the same rule."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark.columns.expected_partition import MODULO, expected_partition, is_elsewhere
from tests.spark.fixtures_markers import ON_SPARK
from tests.spark.fixtures_murmur2 import partition_of

pytestmark = ON_SPARK

KEYS = (b"", b"21", b"foobar", b"a-little-bit-long-string", b"\xff\x00\x80x", bytes(range(256)))


@pytest.mark.parametrize("partitions", [1, 2, 7, 1000])
def test_a_key_belongs_where_kafkas_producer_sends_it(
    session: SparkSession, partitions: int
) -> None:
    keys = session.createDataFrame([(key,) for key in (*KEYS, None)], "key binary")
    with_home = keys.withColumn("home", expected_partition(F.col("key"))).withColumn(
        "last", F.lit(partitions - 1)
    )
    rows = with_home.select("key", F.expr(MODULO)).collect()
    expected = {key: partition_of(key, partitions) for key in KEYS}
    assert {bytes(key): found for key, found in rows if key is not None} == expected
    assert [found for key, found in rows if key is None] == [None]


def test_a_record_is_elsewhere_if_its_topic_has_another_partition_for_its_key(
    session: SparkSession,
) -> None:
    rows = [("a", 4, 1), ("a", 4, 0), ("b", 4, 1), ("b", 4, 0), ("a", None, 1), ("gone", 4, 1)]
    records = session.createDataFrame(rows, "topic string, home int, partition int")
    found = records.where(is_elsewhere({"a": 2, "b": 3})).collect()
    assert sorted(tuple(row) for row in found) == [("a", 4, 1), ("b", 4, 0)]
