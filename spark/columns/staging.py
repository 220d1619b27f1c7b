"""The stage: data is read once and kept as Parquet for later steps, without keys and values."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql.utils import is_remote

from outbox.errors import ConfigurationError

PREFIX: Final = ".stage-"
"""Prefix of a folder that exists as long as its run."""
IN_MEMORY: Final = "memory:"
"""The stage of a small run: Spark's own memory, and its disk if that is full."""
ROW_GROUP_BYTES: Final = 16 * 1024 * 1024
"""A task keeps a row group in memory while it writes or reads it, beside the memory that Spark
manages. With Parquet's default of 128 MiB that grows with the messages until it is as large."""
PROBE_FILES: Final = 32
"""Enough files that each executor of a small cluster writes one."""


def stage_frame(frame: DataFrame, uri: str) -> DataFrame:
    """Write a frame and return it as read back; its sources are not read again.

    Spark knows the size of the files and broadcasts only a small frame. A forced broadcast of a
    frame with a row per commit, batch or bucket would have to fit into the driver's heap.

    Hashes and ids repeat too rarely for a dictionary or a slow compression to pay: the files are
    read once or twice and dropped.

    In memory it becomes one partition, so that later steps need no shuffle.
    """
    if uri.startswith(IN_MEMORY):
        return frame.coalesce(1).localCheckpoint()
    plain = frame.write.option("parquet.enable.dictionary", "false").option("compression", "snappy")
    plain.option("parquet.block.size", ROW_GROUP_BYTES).mode("overwrite").parquet(uri)
    return _read_back(frame, uri)


def _read_back(frame: DataFrame, uri: str) -> DataFrame:
    """Return what was written there; a folder's name is no pattern, whatever its characters."""
    reader = frame.sparkSession.read.option("__globPaths__", "false")
    return reader.schema(frame.schema).parquet(uri)


def stage_counted(frame: DataFrame, uri: str, **sums: Column) -> tuple[DataFrame, dict[str, Any]]:
    """Stage a frame, and return these aggregates of its rows, computed while it is written."""
    seen = Observation()
    observed = frame.observe(seen, *(column.alias(name) for name, column in sums.items()))
    return stage_frame(observed, uri), _seen(seen, sums)


def _seen(observation: Observation, names: Iterable[str]) -> dict[str, Any]:
    """Return what was observed, by name.

    PySpark would iterate over the JVM's map, whose end is an exception with its whole stack trace.
    """
    if is_remote():
        return observation.get
    found: Any = observation._jo
    values = found.getAsJava()
    return {name: values[name] for name in names}


def sweep(parent: Path, now: float, keep_seconds: float) -> None:
    """Remove the stages that killed runs left before ``keep_seconds``; ``now`` is in Unix seconds.

    A run under way changes its stage all the time, so its stage is never that old.
    """
    for left in parent.glob(f"{PREFIX}*"):
        with suppress(FileNotFoundError):
            if left.stat().st_mtime < now - keep_seconds:
                shutil.rmtree(left, ignore_errors=True)


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
