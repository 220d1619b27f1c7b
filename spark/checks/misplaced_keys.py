"""What a run remembers of keys, so that none is split between two runs unseen.

Nobody remembers all keys. But a key whose records all lie where Kafka's own choice puts them is in
one partition, whichever run reads which of them. So a run remembers only the keys with a record
elsewhere, *away*; and a run that reads such a record, or one of a key that was away before, reads
everything and judges by all of it. A record for which a partition was asked may lie anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from spark.checks import keys
from spark.columns import expected_partition, schemas
from spark.columns.frames import Frames
from spark.columns.segments import JUDGED
from spark.columns.staging import staged
from spark.cut import carry_over
from spark.cut.checkpoint import MisplacedKeys, Previous
from spark.findings.finding_class import FindingClass
from spark.findings.topic_rules import TopicRules, rule_of

MOST: Final = 1000
"""Of a topic with more keys away than this no key is remembered, only that there are too many."""
MOST_BROADCAST: Final = 100_000
"""With more records away than this all keys are looked at."""
IS_AWAY: Final = f"home IS NOT NULL AND {expected_partition.MODULO} <> `partition`"
UNKNOWN: Final = "the run before has not looked where the keys of each topic lie"
SPLIT: Final = "a key lies elsewhere than Kafka's own choice puts it, perhaps in two partitions"

Free = Callable[[Collection[str], tuple[int, int] | None], DataFrame]
"""Reads the half ids of some topics for which no partition was asked, of a range or of all."""

Partitions = Mapping[str, int]
"""Of the topics whose keys have one home each, how many partitions they have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MisplacedRecords:
    """The records that are away among those that must all lie where they belong."""

    rows: DataFrame
    count: int
    partitions: Partitions


def homed(partitions: Mapping[str, int], rules: TopicRules) -> Partitions:
    """Return the topics without those whose rule lets a key lie anywhere."""
    if not expected_partition.is_known():
        return {}
    fixed = {topic: rule_of(topic, rules) for topic in partitions}
    return {t: n for t, n in partitions.items() if fixed[t].keyed and fixed[t].ordered}


def misplaced_records(keyed: DataFrame, partitions: Partitions, stage_uri: str) -> MisplacedRecords:
    """Look for the records that are away."""
    rows = _beside(keyed, partitions).where(IS_AWAY).select("half_id", "topic", "key_hash")
    found = staged(rows, f"{stage_uri}/away")
    return MisplacedRecords(rows=found, count=found.count(), partitions=partitions)


def suspected(keyed: DataFrame, misplaced: MisplacedRecords) -> DataFrame:
    """Return the records whose key may be split: where it has a home, those of keys away."""
    if misplaced.count > MOST_BROADCAST:
        return keyed
    others = keyed.where(~F.col("topic").isin([*misplaced.partitions]))
    if misplaced.count == 0:
        return others
    names = F.broadcast(misplaced.rows.select("topic", "key_hash").distinct())
    return others.unionByName(keyed.join(names, ["topic", "key_hash"], "left_semi"))


def remembered(misplaced: MisplacedRecords, free: Free) -> dict[str, MisplacedKeys]:
    """Return, a topic, the keys that are away though no partition was asked for."""
    none = {topic: MisplacedKeys(count) for topic, count in misplaced.partitions.items()}
    if misplaced.count == 0:
        return none
    topics = sorted(row["topic"] for row in misplaced.rows.select("topic").distinct().collect())
    asked = misplaced.rows.join(free(topics, None), "half_id", "left_semi")
    away = asked.select("topic", "key_hash").distinct()
    counts = {row["topic"]: row["count"] for row in away.groupBy("topic").count().collect()}
    few = [topic for topic, count in counts.items() if count <= MOST]
    rows = away.where(F.col("topic").isin(few)).collect()
    return none | {
        topic: MisplacedKeys(
            misplaced.partitions[topic], _keys_of(topic, rows) if topic in few else None
        )
        for topic in counts
    }


def still_remembered(previous: Previous, partitions: Partitions) -> dict[str, MisplacedKeys]:
    """Return what a run that goes on remembers: it has read no key that is away.

    A topic that it did not look at is forgotten, so that who looks again reads everything.
    """
    return {t: previous.away.get(t, MisplacedKeys(count)) for t, count in partitions.items()}


def why_whole(previous: Previous, frames: Frames, partitions: Partitions, free: Free) -> str | None:
    """Return why everything must be read because of where keys lie; None if nothing says so.

    A topic of which it is told already that a key is split need not be looked at.
    """
    read_before = {partition.topic for partition in previous.ends}
    if read_before & partitions.keys() - previous.away.keys():
        return UNKNOWN
    told = carry_over.findings_of(previous.carried)
    split = {f.topic or "" for f in told if f.finding_class is FindingClass.KEY_SPLIT}
    judged = {topic: n for topic, n in partitions.items() if topic not in split}
    if not judged:
        return None
    suspects = _suspects(_read_now(previous, frames), judged, previous.away)
    ends = suspects.groupBy("topic").agg(
        F.min("half_id").alias("low"), F.max("half_id").alias("high")
    )
    rows = [row for row in ends.collect() if row["low"] is not None]
    if not rows:
        return None
    asked = (min(row["low"] for row in rows), max(row["high"] for row in rows))
    unrequested = free(sorted(row["topic"] for row in rows), asked)
    return None if suspects.join(unrequested, "half_id", "left_semi").isEmpty() else SPLIT


def _read_now(previous: Previous, frames: Frames) -> DataFrame:
    """Return the records up to the cut that no run has judged: new ones, and those once ahead.

    One that names no batch is judged by no run (``keys``).
    """
    in_turn = frames.records.where("NOT ahead AND batch_no IS NOT NULL")
    new = in_turn.where("NOT carried")
    if not previous.carried:
        return new
    judged = frames.new_commits.where(F.col("standing") == JUDGED).select("half_id")
    waited = in_turn.where("carried").join(judged, "half_id", "left_semi")
    return new.unionByName(waited.select(new.columns))


def _suspects(
    records: DataFrame, partitions: Partitions, known: Mapping[str, MisplacedKeys]
) -> DataFrame:
    """Return the records that are away, or of a key that was away before."""
    now = {t: away for t, away in known.items() if partitions.get(t) == away.partitions}
    many = [topic for topic, away in now.items() if away.keys is None]
    rows = [{"topic": t, "key_hash": key} for t, away in now.items() for key in away.keys or ()]
    before = schemas.frame_of(records.sparkSession, rows, schemas.KEYS).withColumn(
        "before", F.lit(True)
    )
    beside = _beside(records, partitions).join(F.broadcast(before), ["topic", "key_hash"], "left")
    of_many = F.col("topic").isin(many) & F.col("key_hash").isNotNull()
    return beside.where(F.expr(IS_AWAY) | F.col("before") | of_many)


def _beside(records: DataFrame, partitions: Partitions) -> DataFrame:
    lasts = keys.last_partitions(records.sparkSession, partitions)
    return records.join(F.broadcast(lasts), "topic")


def _keys_of(topic: str, rows: Sequence[Any]) -> frozenset[int]:
    return frozenset(row["key_hash"] for row in rows if row["topic"] == topic)
