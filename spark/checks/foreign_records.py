"""Counts the records that no message explains because they name none.

A record without ``outbox_message_id`` is another writer's: FOREIGN, where a topic's rule forbids
other writers. A record whose ``outbox_message_id`` is malformed claims to be ours: ORPHAN/unknown.
Nothing else is known about them, so there is one finding per topic and cause.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark.findings.finding import Finding
from spark.findings.finding_class import Cause
from spark.findings.topic_rules import TopicRules, rule_of

PartitionRecords = Mapping[str, Mapping[str, int]]
"""By partition number: the number of records, the first offset and the last offset."""
Group = tuple[Cause, str]
"""The cause of a finding about records, and their topic."""


def findings(
    records: DataFrame, rules: TopicRules, before: Iterable[Finding] = ()
) -> Iterator[Finding]:
    """Yield one finding per cause and topic, with counts by partition.

    ``before`` are the findings that earlier runs left open: the records they counted are not read
    again.
    """
    known = {(f.cause, f.topic or ""): f.evidence for f in before if f.half_id is None}
    groups: dict[Group, dict[str, Mapping[str, int]]] = {}
    for row in count_by_partition(records).collect():
        found = Cause.ORPHAN_UNKNOWN if row["malformed"] else Cause.FOREIGN_RECORD
        counts = {name: row[name] for name in ("records", "first", "last")}
        groups.setdefault((found, row["topic"]), {})[str(row["partition"])] = counts
    for (found, topic), partitions in sorted(groups.items()):
        if found is Cause.ORPHAN_UNKNOWN or not _allowed(topic, rules):
            earlier = known.get((found, topic), {}).get("partitions", {})
            yield topic_finding(found, topic, add_counts(earlier, partitions))


def count_by_partition(records: DataFrame) -> DataFrame:
    """Return one row per partition with such records: their number, first and last offset."""
    return (
        records.where(F.col("half_id").isNull())
        .groupBy("topic", "partition", F.col("message_id").isNotNull().alias("malformed"))
        .agg(
            F.count("*").alias("records"),
            F.min("offset").alias("first"),
            F.max("offset").alias("last"),
        )
        .orderBy("topic", "partition")
    )


def add_counts(earlier: PartitionRecords, now: PartitionRecords) -> dict[str, dict[str, int]]:
    """Add the counts of two runs per partition."""
    numbers = sorted({*earlier, *now}, key=int)
    both = {n: [each[n] for each in (earlier, now) if n in each] for n in numbers}
    return {
        number: {
            "records": sum(each["records"] for each in counts),
            "first": min(each["first"] for each in counts),
            "last": max(each["last"] for each in counts),
        }
        for number, counts in both.items()
    }


def topic_finding(found: Cause, topic: str, partitions: PartitionRecords) -> Finding:
    """Return the finding of a topic; its place is the first record in its first partition."""
    number, first = next(iter(partitions.items()))
    name = "foreign" if found is Cause.FOREIGN_RECORD else "malformed"
    evidence: dict[str, Any] = {"records": sum(each["records"] for each in partitions.values())}
    return Finding(
        cause=found,
        subject=f"{name}:{topic}",
        topic=topic,
        partition=int(number),
        offset=first["first"],
        evidence=evidence | {"partitions": partitions},
    )


def _allowed(topic: str, rules: TopicRules) -> bool:
    return rule_of(topic, rules).severity_of(Cause.FOREIGN_RECORD) is None
