"""The columns of the frames, and the schema version that a run writes into its output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

SCHEMA_VERSION: Final = 1
TIME: Final = pa.timestamp("us", tz="UTC")
HEADERS: Final = pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()}))
OTHER_TYPES: Final = {"time": TIME, "headers": HEADERS}


def schema_of(columns: str) -> pa.Schema:
    """Return the schema of these columns, each given as its name and type."""
    named = (each.split() for each in columns.split(","))
    return pa.schema(
        [(name, OTHER_TYPES.get(kind) or pa.type_for_alias(kind)) for name, kind in named]
    )


LOG: Final = schema_of("""
    topic string,
    partition int32,
    offset int64,
    timestamp time,
    key binary,
    value binary,
    headers headers
""")
"""The columns that are requested from Spark's Kafka source."""

SHARD_CUTS: Final = schema_of("""
    shard int32,
    cut_batch int64,
    cut_xid int64,
    cut_n int64,
    base_xid int64,
    base_n int64,
    seen_xid int64,
    seen_n int64,
    newest_batch int64
""")
"""One row per shard: the last batch and position to judge, the first position that can be judged,
the last position that an earlier run has judged, and the last batch that can be in the log."""

KNOWN_BATCHES: Final = schema_of("shard int32, known_batch int64")
"""One row per shard: the last batch all records of which the previous run has read."""

KNOWN_ENDS: Final = schema_of("topic string, partition int32, known_end int64")
"""One row per partition: its end at the previous run."""

HALF_IDS: Final = schema_of("half_id int64")

TEXTS: Final = schema_of("text string")

STARTS: Final = schema_of("topic string, partition int32, start int64")
"""One row per partition of which records have expired: where its log begins."""

LAST_PARTITIONS: Final = schema_of("topic string, last int32")
"""One row per topic: its last partition at the cut."""

KNOWN_PLACES: Final = schema_of("topic string, named_shard int32, batch int64, index int32")
"""One row per topic and shard: a place at which its relay knew all partitions of the topic."""

FINDINGS: Final = schema_of("""
    schema_version int32,
    run_id string,
    finding_id string,
    kind string,
    class string,
    detail string,
    severity string,
    status string,
    message_id string,
    topic string,
    partition int32,
    offset int64,
    key_hash string,
    producer_group string,
    shard int32,
    decision string,
    decided_at time,
    record_time time,
    evidence string
""")
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
