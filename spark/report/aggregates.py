"""What a run counts over all its rows, for the charts and for the next run; no finding needs it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from outbox.reconciliation.log import Partition
from spark.columns.frames import Frames
from spark.columns.parquet_folder import ParquetFolder
from spark.compare import placement
from spark.cut.log_state import Anchor
from spark.report.report import Latency, Minute

MINUTES_SHOWN: Final = 10_080
"""A week of minutes; the charts show the newest ones."""
LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregates:
    """The numbers of messages by minute, how long they waited, and the ends of the log."""

    minutes: tuple[Minute, ...]
    latencies: tuple[Latency, ...]
    """By minute and by topic."""
    anchors: Mapping[Partition, Anchor]


def aggregates_of(frames: Frames, latencies: DataFrame, folder: Path) -> Aggregates:
    """Count the rows, and keep all minutes and topics as Parquet in the folder of the report."""
    by_minute = placement.minutes(frames.segments, frames.new_records)
    return Aggregates(
        minutes=_newest_minutes(_kept(by_minute, folder / "minutes")),
        latencies=_newest_latencies(_kept(latencies, folder / "latencies")),
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


def _kept(rows: DataFrame, folder: Path) -> list[dict[str, Any]]:
    """Collect rows and keep all of them as Parquet; there is one a minute, or a topic."""
    table = rows.toArrow()
    ParquetFolder.emptied(folder).add(table)
    found: list[dict[str, Any]] = table.to_pylist()
    return found


def _newest_minutes(rows: Iterable[dict[str, Any]]) -> tuple[Minute, ...]:
    """Return the newest minutes, in order."""
    minutes = sorted((Minute(**row) for row in rows), key=lambda each: each.minute)
    return tuple(minutes[-MINUTES_SHOWN:])


def _newest_latencies(rows: Iterable[dict[str, Any]]) -> tuple[Latency, ...]:
    """Return the newest minutes and then every topic, each in order."""
    every = [Latency(**row) for row in rows]
    topics = sorted((each for each in every if each.minute is None), key=lambda e: e.topic or "")
    by_minute = sorted((e for e in every if e.minute), key=lambda each: each.minute or LONG_AGO)
    return (*by_minute[-MINUTES_SHOWN:], *topics)
