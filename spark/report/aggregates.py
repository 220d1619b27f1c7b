"""What a run counts over all its rows, for the report and for the next run; no finding needs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from outbox.reconciliation.log import Partition
from spark.columns.frames import Frames
from spark.cut.log_state import Anchor
from spark.report.report import Latency
from spark.report.topic_counts import PlaceCounts, read_counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregates:
    """How long messages waited, how many there were, and the ends of the log."""

    latencies: tuple[Latency, ...]
    """By topic."""
    anchors: Mapping[Partition, Anchor]
    read: PlaceCounts
    """By topic and producer group."""


def aggregates_of(frames: Frames, latencies: DataFrame, committed: DataFrame) -> Aggregates:
    """Count the rows; ``committed`` is ``Sources.read_committed``."""
    return Aggregates(
        latencies=tuple(Latency(**row.asDict()) for row in latencies.collect()),
        anchors=anchors(frames.records),
        read=read_counts(frames, committed),
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
