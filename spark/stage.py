"""The stage: what was read once is kept as Parquet for the steps that follow. No key, no value."""

from __future__ import annotations

from pyspark.sql import DataFrame


def staged(frame: DataFrame, uri: str) -> DataFrame:
    """Write a frame and return it as read back; the sources behind it are not read again.

    Hashes and ids repeat too little for a dictionary to pay for itself.
    """
    plain = frame.write.option("parquet.enable.dictionary", "false")
    plain.mode("overwrite").parquet(uri)
    return frame.sparkSession.read.schema(frame.schema).parquet(uri)
