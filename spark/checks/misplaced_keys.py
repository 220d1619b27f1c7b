"""Finds the records that are not in the partition that Kafka's partitioner chooses for their key.

The partition follows from the key alone (murmur2), so each run finds them among its own records. A
record for which the producer requested a partition is not judged here. One finding per topic.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from outbox.messages.message_id import HalfId
from spark.checks import keys
from spark.columns import expected_partition
from spark.findings.finding import Finding
from spark.findings.finding_class import Cause
from spark.findings.topic_rules import TopicRules, rule_of

if TYPE_CHECKING:
    from outbox.postgres.reconciliation.source import PostgresSnapshot

SHOWN: Final = 20
"""Records of a topic that are listed; the others are counted."""
UnrequestedReader = Callable[[Collection[str], tuple[int, int]], DataFrame]
"""Reads the half ids of some topics for which no partition was requested, within a range."""
IS_MISPLACED: Final = f"home IS NOT NULL AND {expected_partition.MODULO} <> `partition`"


def keyed_topics(partitions: Mapping[str, int], rules: TopicRules) -> dict[str, int]:
    """Return the topics whose keys determine their partitions."""
    return {
        topic: n
        for topic, n in partitions.items()
        if rule_of(topic, rules).partitioner == "murmur2"
    }


def misplaced_records(
    known: DataFrame, partitions: Mapping[str, int], unrequested: UnrequestedReader
) -> DataFrame:
    """Return one row per topic: its number of misplaced records and of their keys, and the first.

    ``known`` are the matches with ``all_known`` (``keys``), ``partitions`` the topics to judge.
    """
    lasts = keys.last_partitions(known.sparkSession, partitions)
    placed = keys.keyed_records(known).join(F.broadcast(lasts), "topic")
    found = placed.where(IS_MISPLACED)
    ends = found.groupBy("topic").agg(F.min("half_id").alias("low"), F.max("half_id").alias("high"))
    if not (rows := ends.collect()):
        return found.limit(0)
    half_ids = min(row["low"] for row in rows), max(row["high"] for row in rows)
    topics = sorted(row["topic"] for row in rows)
    free = unrequested(topics, half_ids)
    place = F.struct(
        *("partition", "offset", "half_id"), F.expr(expected_partition.MODULO).alias("expected")
    )
    return (
        found.join(free, "half_id", "left_semi")
        .groupBy("topic")
        .agg(
            F.count("*").alias("records"),
            F.count_distinct("key_hash").alias("keys"),
            F.slice(F.sort_array(F.collect_list(place)), 1, SHOWN).alias("first"),
        )
        .orderBy("topic")
    )


def findings(
    rows: Iterable[Any],
    snapshot: PostgresSnapshot,
    before: Iterable[Finding] = (),
) -> Iterator[Finding]:
    """Yield one finding per topic.

    ``before`` are the findings that earlier runs left open: their records are not read again.
    """
    wrong = Cause.WRONG_PLACE_PARTITION
    known = {f.topic: f.evidence for f in before if f.cause is wrong and f.half_id is None}
    for row in rows:
        ids = [HalfId(each["half_id"]) for each in row["first"]]
        halves = snapshot.halves(ids)
        names = {i: str(halves[i].half.message_id) if i in halves else str(i) for i in ids}
        yield _finding(row, names, known.get(row["topic"], {}))


def _finding(row: Any, names: Mapping[HalfId, str], earlier: Mapping[str, Any]) -> Finding:
    shown = [
        {"message_id": names[each["half_id"]]}
        | {name: each[name] for name in ("partition", "offset", "expected")}
        for each in row["first"]
    ]
    return Finding(
        cause=Cause.WRONG_PLACE_PARTITION,
        subject=f"topic:{row['topic']}",
        topic=row["topic"],
        partition=shown[0]["partition"],
        offset=shown[0]["offset"],
        evidence={
            "records": row["records"] + earlier.get("records", 0),
            "keys": row["keys"],
            "first": [*earlier.get("first", ()), *shown][:SHOWN],
        },
    )
