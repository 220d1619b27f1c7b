"""What a run counts over all its rows, for the report and for the next run; no finding needs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from outbox.reconciliation.log import Partition
from spark.columns.frames import Frames
from spark.columns.parquet_folder import ParquetFolder
from spark.compare import placement
from spark.cut.log_state import Anchor
from spark.report.report import Latency, Minute

MINUTES_SHOWN: Final = 10_080
"""A week of minutes; the chart shows the newest ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregates:
    """The numbers of messages by minute, how long they waited, and the ends of the log."""

    minutes: tuple[Minute, ...]
    latencies: tuple[Latency, ...]
    """By topic."""
    anchors: Mapping[Partition, Anchor]


def aggregates_of(frames: Frames, latencies: DataFrame, folder: Path) -> Aggregates:
    """Count the rows, and keep all minutes as Parquet in the folder of the report."""
    by_minute = placement.minutes(frames.segments, frames.new_records).toArrow()
    ParquetFolder.emptied(folder / "minutes").add(by_minute)
    minutes = (Minute(**row) for row in by_minute.to_pylist())
    return Aggregates(
        minutes=tuple(sorted(minutes, key=lambda each: each.minute)[-MINUTES_SHOWN:]),
        latencies=tuple(Latency(**row.asDict()) for row in latencies.collect()),
        anchors=anchors(frames.records),
    )


def anchors(records: DataFrame) -> dict[Partition, Anchor]:
    """Return our last record in each partition that was read."""
    last = F.max_by(F.struct("offset", "digest"), "offset").alias("last")
    rows = (
        records.where(F.col("message_id").isNotNull())
        .groupBy("topic", "partition")
        .agg(last)
        .select("topic", "partition", "last.*")
        .collect()
    )
    return {Partition(r["topic"], r["partition"]): Anchor(r["offset"], r["digest"]) for r in rows}
