"""Kafka's own function, called from Spark's generated code, beside our own of the same rule."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark.columns.expected_partition import MODULO, expected_partition
from spark.even.murmur2 import home_of
from tests.spark.fixtures_markers import ON_SPARK

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
    expected = {key: home_of(key) % partitions for key in KEYS}
    assert {bytes(key): found for key, found in rows if key is not None} == expected
    assert [found for key, found in rows if key is None] == [None]
