"""What a run counts over all its rows, for the report and for the next run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from outbox.reconciliation.log import Partition
from spark.columns.frames import Frames
from spark.columns.slot import record_counts
from spark.compare.bucket_checksums import Mismatch, mismatched_records
from spark.cut.log_state import Anchor
from spark.report.topic_counts import PlaceCounts


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregates:
    """How many messages there were, and the ends of the log."""

    anchors: Mapping[Partition, Anchor]
    read: PlaceCounts
    """By topic and producer group."""
    counts: Mapping[str, int]
    """The messages by standing; the records, and those ahead of the cut or of other writers."""


def aggregates_of(frames: Frames, unequal: Mapping[str, int], read: PlaceCounts) -> Aggregates:
    """Count the rows; ``unequal`` are the counts of the ``unequal_records``."""
    named = {name: unequal[name] for name in ("ahead", "foreign")}
    return Aggregates(
        anchors=anchors(frames.records),
        read=read,
        counts={**frames.standings, "records": frames.size, **named},
    )


def unequal_records(frames: Frames, mismatch: Mismatch | None) -> dict[str, int]:
    """Count the records; where checksums are equal, they are the commits at their places."""
    columns = [column.alias(name) for name, column in record_counts().items()]
    (row,) = mismatched_records(frames.records, mismatch).agg(*columns).collect()
    return row.asDict()


def first_ahead(records: DataFrame) -> dict[Partition, int]:
    """Return the first record of each partition that is ahead of the cut."""
    ahead = records.where("ahead").groupBy("topic", "partition").agg(F.min("offset")).collect()
    return {Partition(topic, number): offset for topic, number, offset in ahead}


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
