"""Finds the records that are not in the partition that Kafka's partitioner chooses for their key.

The partition follows from the key alone (murmur2), so each run finds them among its own records.
One finding per topic.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from outbox.messages.message_id import HalfId
from spark.checks.queries import query
from spark.columns import schemas
from spark.findings.finding import Finding
from spark.findings.finding_class import Cause
from spark.findings.topic_rules import TopicRules, rule_of

if TYPE_CHECKING:
    from outbox.postgres.reconciliation.source import PostgresSnapshot

SHOWN: Final = 20
"""Records of a topic that are listed; the others are counted."""
UnrequestedReader = Callable[[Collection[str], tuple[int, int]], DataFrame]
"""Reads the half ids of some topics for which no partition was requested, within a range."""


def keyed_topics(partitions: Mapping[str, int], rules: TopicRules) -> dict[str, int]:
    """Return the topics whose keys determine their partitions."""
    return {
        topic: n
        for topic, n in partitions.items()
        if rule_of(topic, rules).partitioner == "murmur2"
    }


def misplaced_topics(
    matches: DataFrame,
    partitions: Mapping[str, int],
    known_after: Mapping[str, Mapping[int, int]],
    unrequested: UnrequestedReader,
) -> list[Any]:
    """Return one row per topic with misplaced records.

    ``partitions`` are the topics to judge. ``known_after`` is by topic, then by shard, a batch
    after which the relay knew that many in any case.
    """
    session = matches.sparkSession
    lasts = [{"topic": topic, "last": count - 1} for topic, count in partitions.items()]
    places = [
        {"topic": topic, "named_shard": shard, "batch": batch_no + 1, "index": 0}
        for topic, batches in known_after.items()
        for shard, batch_no in batches.items()
    ]
    misplaced = query(
        "misplaced_records",
        matches=matches,
        last_partitions=schemas.frame_of(session, lasts, schemas.LAST_PARTITIONS),
        known_places=schemas.frame_of(session, places, schemas.KNOWN_PLACES),
    )
    ends = F.collect_set("topic"), F.min("half_id"), F.max("half_id")
    topics, *half_ids = misplaced.agg(*ends).collect()[0]
    if not topics:
        return []
    free = unrequested(sorted(topics), tuple(half_ids))
    return query("misplaced_topics", misplaced=misplaced, unrequested=free, shown=SHOWN).collect()


def findings(
    rows: Iterable[Any], snapshot: PostgresSnapshot, before: Iterable[Finding] = ()
) -> Iterator[Finding]:
    """Yield one finding per topic.

    ``before`` are the findings that earlier runs left open: their records are not read again.
    """
    wrong = Cause.WRONG_PLACE_PARTITION
    known = {f.topic: f.evidence for f in before if f.cause is wrong and f.half_id is None}
    for row in rows:
        topic, earlier = row["topic"], known.get(row["topic"], {})
        shown = _shown(row["first"], snapshot)
        yield Finding(
            cause=wrong,
            subject=f"topic:{topic}",
            topic=topic,
            partition=shown[0]["partition"],
            offset=shown[0]["offset"],
            evidence={
                "records": row["records"] + earlier.get("records", 0),
                "keys": row["keys"],
                "first": [*earlier.get("first", ()), *shown][:SHOWN],
            },
        )


def _shown(rows: Iterable[Any], snapshot: PostgresSnapshot) -> list[dict[str, Any]]:
    """Return the records as evidence; one whose half is gone is named by its half id."""
    records = [row.asDict() for row in rows]
    ids = [HalfId(each.pop("half_id")) for each in records]
    halves = snapshot.halves(ids)
    names = [str(halves[i].half.message_id) if i in halves else str(i) for i in ids]
    return [{"message_id": name, **record} for name, record in zip(names, records, strict=True)]
