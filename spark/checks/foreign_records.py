"""Records of other writers on topics that are ours alone: without a valid ``outbox_message_id``.

Nothing can be said of one of them but that it is there, so they are one finding a topic.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from spark.findings.finding import Finding
from spark.findings.finding_class import FindingClass
from spark.findings.topic_rules import TopicRules, rule_of

Counted = Mapping[str, Mapping[str, int]]
"""By partition number: how many records, the first offset, the last one."""


def findings(
    records: DataFrame, rules: TopicRules, before: Iterable[Finding] = ()
) -> Iterator[Finding]:
    """Yield one finding a topic whose rule forbids other writers, with counts by partition.

    ``before`` are the findings that earlier runs left open: what they counted is not read again.
    """
    if all(_allowed(name, rules) for name in rules):
        return
    known = {f.topic: f.detail for f in before if f.finding_class is FindingClass.FOREIGN}
    by_topic: dict[str, dict[str, Mapping[str, int]]] = {}
    for row in counted(records).collect():
        counts = {name: row[name] for name in ("records", "first", "last")}
        by_topic.setdefault(row["topic"], {})[str(row["partition"])] = counts
    for topic, partitions in sorted(by_topic.items()):
        if not _allowed(topic, rules):
            earlier = known[topic]["partitions"] if topic in known else {}
            yield of_topic(topic, together(earlier, partitions))


def counted(records: DataFrame) -> DataFrame:
    """Return one row a partition with such records: how many, the first and the last offset."""
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


def together(earlier: Counted, now: Counted) -> dict[str, dict[str, int]]:
    """Add up what two runs have counted in the same partitions."""
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


def of_topic(topic: str, partitions: Counted) -> Finding:
    """Return the finding of a topic; its place is that of the first record in its partitions."""
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
