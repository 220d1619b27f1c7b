"""The columns of the frames, and the schema version that a run writes into its output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

SCHEMA_VERSION: Final = 1

HEADERS: Final = ArrayType(
    StructType([StructField("key", StringType()), StructField("value", BinaryType())])
)

LOG: Final = StructType(
    [
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("headers", HEADERS),
    ]
)
"""The columns that are requested from Spark's Kafka source."""

SHARD_CUTS: Final = pa.schema(
    {
        "shard": pa.int32(),
        "cut_batch": pa.int64(),
        "cut_xid": pa.int64(),
        "cut_n": pa.int64(),
        "base_xid": pa.int64(),
        "base_n": pa.int64(),
        "seen_xid": pa.int64(),
        "seen_n": pa.int64(),
        "newest_batch": pa.int64(),
    }
)
"""One row per shard: the last batch and position to judge, the first position that can be judged,
the last position that an earlier run has judged, and the last batch that can be in the log."""

CARRIED: Final = pa.schema({"side": pa.string(), "half_id": pa.int64(), "facts": pa.string()})
"""What a run leaves open for the next one; the facts are a row as JSON."""

HALF_IDS: Final = pa.schema({"half_id": pa.int64()})

TEXTS: Final = pa.schema({"text": pa.string()})

STARTS: Final = pa.schema({"topic": pa.string(), "partition": pa.int32(), "start": pa.int64()})
"""One row per partition of which records have expired: where its log begins."""

LAST_PARTITIONS: Final = pa.schema({"topic": pa.string(), "last": pa.int32()})
"""One row per topic: its last partition at the cut."""

KNOWN_PLACES: Final = pa.schema(
    {
        "topic": pa.string(),
        "named_shard": pa.int32(),
        "batch": pa.int64(),
        "index": pa.int32(),
    }
)
"""One row per topic and shard: a place at which its relay knew all partitions of the topic."""

TIME: Final = pa.timestamp("us", tz="UTC")

FINDINGS: Final = pa.schema(
    {
        "schema_version": pa.int32(),
        "run_id": pa.string(),
        "finding_id": pa.string(),
        "kind": pa.string(),
        "class": pa.string(),
        "detail": pa.string(),
        "severity": pa.string(),
        "status": pa.string(),
        "message_id": pa.string(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "key_hash": pa.string(),
        "producer_group": pa.string(),
        "shard": pa.int32(),
        "decision": pa.string(),
        "decided_at": TIME,
        "record_time": TIME,
        "evidence": pa.string(),
    }
)
"""The table of the findings: all of them, without any value."""


def frame_of(
    spark_session: SparkSession, rows: Sequence[Mapping[str, Any]], schema: Any
) -> DataFrame:
    """Return the driver's rows as a frame; they are sent as Arrow, so no Python worker starts.

    The schema is passed too, because Spark Connect derives none from a table without rows. They
    are one partition, which joins with another single partition without a shuffle.
    """
    table = pa.Table.from_pylist(list(rows), schema=schema)
    return spark_session.createDataFrame(table, from_arrow_schema(schema)).coalesce(1)
