"""Rows as Spark reads them from Kafka."""

from __future__ import annotations

from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession

LOG = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    ]
)


def log(session: SparkSession, *rows: dict[str, Any]) -> DataFrame:
    """Return records as the Kafka source gives them."""
    filled = [
        {"topic": "points", "partition": 0, "offset": place, "key": None, "value": None, **row}
        for place, row in enumerate(rows)
    ]
    return session.createDataFrame(pa.Table.from_pylist(filled, schema=LOG))
