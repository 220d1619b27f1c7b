"""Checks that no key is split over two partitions, even if two runs read its records.

Storing all keys would be too much. A key whose records are all in their expected partition, the one
that Kafka's partitioner chooses, is in one partition, whichever run reads which of them. So a run
stores only the *misplaced* keys: those with a record outside the expected partition. A run that
reads a misplaced record, or a record of a key that was misplaced before, reads everything and
judges by all of it. A record for which the producer requested a partition may be anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark.checks import keys
from spark.columns import expected_partition, schemas
from spark.columns.frames import Frames
from spark.columns.segments import JUDGED
from spark.columns.staging import stage_counted
from spark.compare import open_items
from spark.cut.checkpoint import MisplacedKeys, Previous
from spark.findings.finding_class import FindingClass
from spark.findings.topic_rules import TopicRules, rule_of

MOST_KEYS: Final = 1000
"""Above this number of misplaced keys per topic, only a flag is stored."""
MOST_BROADCAST: Final = 100_000
"""Above this number of misplaced records all keys are examined."""
IS_MISPLACED: Final = f"home IS NOT NULL AND {expected_partition.MODULO} <> `partition`"
NOT_CHECKED_BEFORE: Final = (
    "the previous run did not check the partitions of the keys of each topic"
)
SPLIT: Final = (
    "a key has a record outside the partition that Kafka chooses for it, perhaps in two partitions"
)

UnrequestedReader = Callable[[Collection[str], tuple[int, int] | None], DataFrame]
"""Reads the half ids of some topics for which no partition was requested, of a range or all."""

PartitionCounts = Mapping[str, int]
"""The number of partitions by topic, for topics whose keys have an expected partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MisplacedRecords:
    """The misplaced ones of the records that must be in their expected partition."""

    rows: DataFrame
    count: int
    partitions: PartitionCounts


def fixed_key_topics(partitions: Mapping[str, int], rules: TopicRules) -> PartitionCounts:
    """Return the topics without those whose rule lets a key be in any partition."""
    if not expected_partition.is_available():
        return {}
    fixed = {topic: rule_of(topic, rules) for topic in partitions}
    return {t: n for t, n in partitions.items() if fixed[t].keyed and fixed[t].ordered}


def find_misplaced_records(
    keyed: DataFrame, partitions: PartitionCounts, stage_uri: str, elsewhere: int | None = None
) -> MisplacedRecords:
    """Find the misplaced records; ``elsewhere`` is how many there can be, if that is known."""
    if elsewhere == 0:
        return MisplacedRecords(rows=keyed.limit(0), count=0, partitions=partitions)
    rows = (
        _with_last_partition(keyed, partitions)
        .where(IS_MISPLACED)
        .select("half_id", "topic", "key_hash")
    )
    found, seen = stage_counted(rows, f"{stage_uri}/misplaced", rows=F.count("*"))
    return MisplacedRecords(rows=found, count=seen["rows"], partitions=partitions)


def possibly_split(keyed: DataFrame, misplaced: MisplacedRecords) -> DataFrame:
    """Return the records whose key may be split; with an expected partition only misplaced keys."""
    if misplaced.count > MOST_BROADCAST:
        return keyed
    others = keyed.where(~F.col("topic").isin([*misplaced.partitions]))
    if misplaced.count == 0:
        return others
    names = F.broadcast(misplaced.rows.select("topic", "key_hash").distinct())
    return others.unionByName(keyed.join(names, ["topic", "key_hash"], "left_semi"))


def misplaced_keys_by_topic(
    misplaced: MisplacedRecords, unrequested: UnrequestedReader
) -> dict[str, MisplacedKeys]:
    """Return per topic the misplaced keys for which no partition was requested."""
    none = {topic: MisplacedKeys(count) for topic, count in misplaced.partitions.items()}
    if misplaced.count == 0:
        return none
    topics = sorted(row["topic"] for row in misplaced.rows.select("topic").distinct().collect())
    movable = misplaced.rows.join(unrequested(topics, None), "half_id", "left_semi")
    keys_of_topics = movable.select("topic", "key_hash").distinct()
    counts = {
        row["topic"]: row["count"] for row in keys_of_topics.groupBy("topic").count().collect()
    }
    few = [topic for topic, count in counts.items() if count <= MOST_KEYS]
    rows = keys_of_topics.where(F.col("topic").isin(few)).collect()
    return none | {
        topic: MisplacedKeys(
            misplaced.partitions[topic], _keys_of(topic, rows) if topic in few else None
        )
        for topic in counts
    }


def kept_misplaced_keys(
    previous: Previous, partitions: PartitionCounts
) -> dict[str, MisplacedKeys]:
    """Return the misplaced keys after an incremental run, which has read no new one.

    A topic that it did not check is dropped, so that the next run that checks it reads everything.
    """
    return {t: previous.misplaced.get(t, MisplacedKeys(count)) for t, count in partitions.items()}


def full_read_reason(
    previous: Previous, frames: Frames, partitions: PartitionCounts, unrequested: UnrequestedReader
) -> str | None:
    """Return why the places of keys make a full read necessary; None if they do not.

    A topic with an open finding about a split key is not checked.
    """
    read_before = {partition.topic for partition in previous.ends}
    if read_before & partitions.keys() - previous.misplaced.keys():
        return NOT_CHECKED_BEFORE
    earlier = open_items.carried_findings(previous.carried)
    split = {f.topic or "" for f in earlier if f.finding_class is FindingClass.KEY_SPLIT}
    judged = {topic: n for topic, n in partitions.items() if topic not in split}
    if not judged or (frames.elsewhere == 0 and not _any_known(previous, judged)):
        return None
    suspects = _suspects(_newly_judged(previous, frames), judged, previous.misplaced)
    ends = suspects.groupBy("topic").agg(
        F.min("half_id").alias("low"), F.max("half_id").alias("high")
    )
    rows = [row for row in ends.collect() if row["low"] is not None]
    if not rows:
        return None
    id_range = (min(row["low"] for row in rows), max(row["high"] for row in rows))
    half_ids = unrequested(sorted(row["topic"] for row in rows), id_range)
    return None if suspects.join(half_ids, "half_id", "left_semi").isEmpty() else SPLIT


def _newly_judged(previous: Previous, frames: Frames) -> DataFrame:
    """Return the records up to the cut that no run has judged: new ones, and those once ahead.

    A record that names no batch is judged by no run (``keys``).
    """
    in_turn = frames.records.where("NOT ahead AND batch_no IS NOT NULL")
    new = in_turn.where("NOT carried")
    if not previous.carried:
        return new
    judged = frames.new_commits.where(F.col("standing") == JUDGED).select("half_id")
    waited = in_turn.where("carried").join(judged, "half_id", "left_semi")
    return new.unionByName(waited.select(new.columns))


def _any_known(previous: Previous, judged: PartitionCounts) -> bool:
    """Whether an earlier run has left a misplaced key of one of these topics."""
    known = (previous.misplaced.get(topic) for topic in judged)
    return any(each is not None and each.keys != frozenset() for each in known)


def _suspects(
    records: DataFrame, partitions: PartitionCounts, known: Mapping[str, MisplacedKeys]
) -> DataFrame:
    """Return the misplaced records, and those of a key that was misplaced before."""
    now = {t: each for t, each in known.items() if partitions.get(t) == each.partitions}
    many = [topic for topic, each in now.items() if each.keys is None]
    rows = [{"topic": t, "key_hash": key} for t, each in now.items() for key in each.keys or ()]
    before = schemas.frame_of(records.sparkSession, rows, schemas.KEYS).withColumn(
        "before", F.lit(True)
    )
    joined = _with_last_partition(records, partitions).join(
        F.broadcast(before), ["topic", "key_hash"], "left"
    )
    of_many = F.col("topic").isin(many) & F.col("key_hash").isNotNull()
    return joined.where(F.expr(IS_MISPLACED) | F.col("before") | of_many)


def _with_last_partition(records: DataFrame, partitions: PartitionCounts) -> DataFrame:
    lasts = keys.last_partitions(records.sparkSession, partitions)
    return records.join(F.broadcast(lasts), "topic")


def _keys_of(topic: str, rows: Sequence[Any]) -> frozenset[int]:
    return frozenset(row["key_hash"] for row in rows if row["topic"] == topic)
