"""Rows as Spark reads them from Kafka."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from spark.columns import schemas


def log(session: SparkSession, *rows: dict[str, Any]) -> DataFrame:
    """Return records as the Kafka source gives them."""
    filled = [
        {"topic": "points", "partition": 0, "offset": place, "key": None, "value": None, **row}
        for place, row in enumerate(rows)
    ]
    return schemas.frame_of(session, filled, schemas.LOG)
