"""Counts the records that no message explains because they name none.

A record without ``outbox_message_id`` is another writer's: FOREIGN, which counts where a topic's
rule forbids other writers. A record whose ``outbox_message_id`` is malformed claims to be ours:
ORPHAN/unknown. Nothing else is known about them, so there is one finding per topic and cause.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark.findings.finding import Finding
from spark.findings.finding_class import Cause

NAMES: Final = {Cause.FOREIGN_RECORD: "foreign", Cause.ORPHAN_UNKNOWN: "malformed"}
Counts = Mapping[str, int]
"""The number of records of a partition, their first and their last offset."""


def findings(records: DataFrame, before: Iterable[Finding] = ()) -> Iterator[Finding]:
    """Yield one finding per cause and topic, with counts by partition.

    ``before`` are the findings that earlier runs left open: the records they counted are not read
    again.
    """
    earlier = {(f.cause, f.topic): f.evidence for f in before if f.half_id is None}
    found: dict[tuple[Cause, str], dict[str, Counts]] = {}
    for row in count_by_partition(records).collect():
        cause = Cause.ORPHAN_UNKNOWN if row["malformed"] else Cause.FOREIGN_RECORD
        group, number = (cause, row["topic"]), str(row["partition"])
        known = earlier.get(group, {}).get("partitions", {})
        partitions = found.setdefault(group, dict(known))
        counts = {name: row[name] for name in ("records", "first", "last")}
        partitions[number] = _sum(counts, partitions.get(number))
    for (cause, topic), partitions in found.items():
        yield topic_finding(cause, topic, dict(sorted(partitions.items(), key=_number)))


def count_by_partition(records: DataFrame) -> DataFrame:
    """Return one row per partition with such records: their number, first and last offset."""
    return (
        records.where("half_id IS NULL")
        .groupBy(F.expr("message_id IS NOT NULL AS malformed"), "topic", "partition")
        .agg(
            F.count("*").alias("records"),
            F.min("offset").alias("first"),
            F.max("offset").alias("last"),
        )
        .orderBy("malformed", "topic", "partition")
    )


def topic_finding(cause: Cause, topic: str, partitions: Mapping[str, Counts]) -> Finding:
    """Return the finding of a topic; its place is the first record in its first partition."""
    number, first = next(iter(partitions.items()))
    records = sum(each["records"] for each in partitions.values())
    return Finding(
        cause=cause,
        subject=f"{NAMES[cause]}:{topic}",
        topic=topic,
        partition=int(number),
        offset=first["first"],
        evidence={"records": records, "partitions": partitions},
    )


def _sum(now: Counts, earlier: Counts | None) -> Counts:
    if earlier is None:
        return now
    return {
        "records": earlier["records"] + now["records"],
        "first": min(earlier["first"], now["first"]),
        "last": max(earlier["last"], now["last"]),
    }


def _number(partition: tuple[str, Any]) -> int:
    return int(partition[0])
