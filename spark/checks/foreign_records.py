"""Checks topics that only the outbox may write for records without a valid ``outbox_message_id``.

Nothing else is known about such a record, so there is one finding per topic.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from spark.findings.finding import Finding
from spark.findings.finding_class import FindingClass
from spark.findings.topic_rules import TopicRules, rule_of

PartitionRecords = Mapping[str, Mapping[str, int]]
"""By partition number: the number of records, the first offset and the last offset."""


def findings(
    records: DataFrame, rules: TopicRules, before: Iterable[Finding] = ()
) -> Iterator[Finding]:
    """Yield one finding per topic whose rule forbids other writers, with counts by partition.

    ``before`` are the findings that earlier runs left open: the records they counted are not read
    again.
    """
    if all(_allowed(name, rules) for name in rules):
        return
    known = {f.topic: f.detail for f in before if f.finding_class is FindingClass.FOREIGN}
    by_topic: dict[str, dict[str, Mapping[str, int]]] = {}
    for row in count_by_partition(records).collect():
        counts = {name: row[name] for name in ("records", "first", "last")}
        by_topic.setdefault(row["topic"], {})[str(row["partition"])] = counts
    for topic, partitions in sorted(by_topic.items()):
        if not _allowed(topic, rules):
            earlier = known[topic]["partitions"] if topic in known else {}
            yield topic_finding(topic, add_counts(earlier, partitions))


def count_by_partition(records: DataFrame) -> DataFrame:
    """Return one row per partition with such records: their number, first and last offset."""
    return (
        records.where(F.col("half_id").isNull())
        .groupBy("topic", "partition")
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


def topic_finding(topic: str, partitions: PartitionRecords) -> Finding:
    """Return the finding of a topic; its place is the first record in its first partition."""
    number, first = next(iter(partitions.items()))
    detail: dict[str, Any] = {"records": sum(each["records"] for each in partitions.values())}
    return Finding(
        finding_class=FindingClass.FOREIGN,
        subject=f"foreign:{topic}",
        topic=topic,
        partition=int(number),
        offset=first["first"],
        detail=detail | {"partitions": partitions},
    )


def _allowed(topic: str, rules: TopicRules) -> bool:
    return rule_of(topic, rules).severity_of(FindingClass.FOREIGN) is None
