"""The stage: data is read once and kept as Parquet for later steps, without keys and values."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final
from uuid import uuid4

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql.utils import is_remote

from outbox.errors import ConfigurationError

PLAIN: Final = {
    "compression": "snappy",
    "parquet.block.size": str(16 * 1024 * 1024),
    "parquet.column.statistics.enabled": "false",
    "parquet.enable.dictionary": "false",
}
"""A task keeps a row group in memory while it writes or reads it, beside the memory that Spark
manages. With Parquet's default of 128 MiB that grows with the messages until it is as large.

Hashes and ids repeat too rarely for a dictionary or a slow compression to pay, and nobody asks for
their least and greatest: the files are read once or twice and dropped."""
PROBE_FILES: Final = 32
"""Enough files that each executor of a small cluster writes one."""


def stage_frame(frame: DataFrame, uri: str) -> DataFrame:
    """Write a frame and return it as read back; its sources are not read again.

    Spark knows the size of the files and broadcasts only a small frame. A forced broadcast of a
    frame with a row per commit, batch or bucket would have to fit into the driver's heap.
    """
    frame.write.options(**PLAIN).mode("overwrite").parquet(uri)
    return _read_back(frame, uri)


def _read_back(frame: DataFrame, uri: str) -> DataFrame:
    """Return what was written there; a folder's name is no pattern, whatever its characters."""
    reader = frame.sparkSession.read.option("__globPaths__", "false")
    return reader.schema(frame.schema).parquet(uri)


def stage_counted(frame: DataFrame, uri: str, **sums: Column) -> tuple[DataFrame, dict[str, Any]]:
    """Stage a frame, and return these aggregates of its rows, computed while it is written."""
    seen = Observation()
    observed = frame.observe(seen, *(column.alias(name) for name, column in sums.items()))
    return stage_frame(observed, uri), seen.get


@contextmanager
def run_folder(spark_session: SparkSession, installation_uri: str) -> Iterator[str]:
    """Yield the folder of a run below that of its installation, which is removed afterwards.

    One run of an installation is under way at a time, so what is there was left by a killed one.
    """
    _remove(spark_session, installation_uri)
    try:
        yield f"{installation_uri}/{uuid4().hex}"
    finally:
        with suppress(Exception):  # the next run removes it
            _remove(spark_session, installation_uri)


def _remove(spark_session: SparkSession, uri: str) -> None:
    """Remove a folder, if there is one; over Spark Connect, which has no file system, empty it."""
    if is_remote():
        spark_session.range(0).write.mode("overwrite").parquet(uri)
        return
    jvm: Any = spark_session._jvm
    path = jvm.org.apache.hadoop.fs.Path(uri)
    path.getFileSystem(spark_session._jsc.hadoopConfiguration()).delete(path, True)


def refuse_unshared(spark_session: SparkSession, uri: str) -> None:
    """Raise ConfigurationError unless the driver reads back what the executors write there.

    On separate disks the stage would be empty on both sides, which would look like a clean run.
    """
    probe = f"{uri}/probe"
    files = spark_session.range(0, PROBE_FILES, 1, numPartitions=PROBE_FILES)
    files.write.mode("overwrite").parquet(probe)
    if _read_back(files, probe).count() != PROBE_FILES:
        raise ConfigurationError(
            f"{uri} is not shared by the driver and all executors: name storage that they share"
        )
