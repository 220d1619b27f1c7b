"""The stage: what was read once is kept as Parquet for the steps that follow. No key, no value."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from outbox.errors import ConfigurationError

PREFIX: Final = ".stage-"
"""Of a folder that lasts as long as its run."""
PROBE_FILES: Final = 32
"""Enough that each executor of a small cluster writes one."""


def staged(frame: DataFrame, uri: str) -> DataFrame:
    """Write a frame and return it as read back; the sources behind it are not read again.

    Hashes and ids repeat too little for a dictionary to pay for itself, or for a slow compression:
    it is read once or twice and dropped.
    """
    plain = frame.write.option("parquet.enable.dictionary", "false").option("compression", "snappy")
    plain.mode("overwrite").parquet(uri)
    return frame.sparkSession.read.schema(frame.schema).parquet(uri)


def sweep(parent: Path, now: float, keep_seconds: float) -> None:
    """Remove the stages that killed runs have left so long ago; ``now`` in seconds since 1970.

    A run that is under way changes its stage all the time.
    """
    for left in parent.glob(f"{PREFIX}*"):
        with suppress(FileNotFoundError):
            if left.stat().st_mtime < now - keep_seconds:
                shutil.rmtree(left, ignore_errors=True)


def refuse_unshared(spark_session: SparkSession, uri: str) -> None:
    """Raise ConfigurationError unless the driver reads back what the executors write there.

    On disks of their own a stage would read back empty on both sides, and nothing looks cleaner.
    """
    probe = f"{uri}/probe"
    files = spark_session.range(0, PROBE_FILES, 1, numPartitions=PROBE_FILES)
    files.write.mode("overwrite").parquet(probe)
    if spark_session.read.schema(files.schema).parquet(probe).count() != PROBE_FILES:
        raise ConfigurationError(
            f"{uri} is not one place for the driver and all executors: name storage that they share"
        )
