"""Whether records lie in the order of their commits, and name their place in it (I6).

Ranks are the commit log's: the relay's batch header is judged, and believed only where the folds
proved it. One cheap pass over all pairs flags what may be wrong; only the keys and batches of
flagged rows are looked at closely. Within a shard ranks can be compared, and all messages of a key
are of one shard.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from outbox.messages.message_id import SHARDS
from spark.columns import manifests
from spark.columns.staging import staged
from spark.compare.decision_table import Decision, Listed
from spark.compare.matches import HEADER, PLACE
from spark.findings.finding import Finding
from spark.findings.finding_class import FindingClass

LANE: Final = ("topic", "partition", "shard")
"""Within these, offsets rise with ranks, save for records that were held."""


def findings(
    pairs: DataFrame,
    commits: DataFrame,
    records: DataFrame,
    listed: DataFrame,
    unlisted: Collection[int],
    stage_uri: str,
) -> Iterator[Finding]:
    """Yield every message that is out of order or names another place; by place, a few at a time.

    ``listed`` are the manifests. Entries are decoded only when something was flagged.
    """
    promised = judged(pairs, unlisted)
    suspects = staged(flagged(promised, listed), f"{stage_uri}/disorder")
    if suspects.isEmpty():
        return
    entries = manifests.entries(listed)
    inverted = inversions(suspects, promised, entries)
    drifting = drifts(suspects, promised, entries)
    found = disordered(inverted, drifting, commits, records)
    yield from map(of_row, found.toLocalIterator(prefetchPartitions=True))


def judged(pairs: DataFrame, unlisted: Collection[int]) -> DataFrame:
    """Return the pairs whose order is promised: a repair is not, nor what no manifest lists.

    A shard of ``unlisted`` publishes at least once, or has done so; its records without a batch are
    of that time.
    """
    free = F.col("batch_no").isNull() & F.col("shard").isin(list(unlisted))
    return pairs.where(~F.col("redriven") & ~free)


def flagged(pairs: DataFrame, listed: DataFrame) -> DataFrame:
    """Return the pairs that lie behind a later commit of their lane, or do not name their place."""
    kept = listed.where("intact").groupBy("shard").agg(F.min("batch_no").alias("first_batch"))
    doubtful = pairs.where("NOT proven").join(F.broadcast(kept), "shard", "left")
    drifting = doubtful.where(_drifts()).drop("first_batch")
    return late(pairs).unionByName(drifting, allowMissingColumns=True)


def late(pairs: DataFrame) -> DataFrame:
    """Return the pairs that lie behind a later commit of their lane; without a key there is none.

    The lane is told by its hash, which sorts faster. Lanes that share one are told apart when what
    was flagged is looked at.
    """
    columns = (*LANE, "key_hash", "offset", "rank")
    keyed = pairs.where(F.col("key_hash").isNotNull()).select(*columns)
    lane = Window.partitionBy("lane").orderBy("offset")
    before = F.max("rank").over(lane.rowsBetween(Window.unboundedPreceding, -1))
    ranked = keyed.withColumn("lane", F.xxhash64(*LANE)).withColumn("before", before)
    behind = ranked.where(F.col("before") > F.col("rank"))
    return behind.select(*columns, F.lit(True).alias("late"))


def inversions(suspects: DataFrame, pairs: DataFrame, listed: DataFrame) -> DataFrame:
    """Return each message that lies behind a later commit of its key, and that other message.

    Judged are first copies, save for those that Kafka had before PostgreSQL listed them here.
    """
    keys = suspects.where("late").select(*LANE, "key_hash").distinct()
    firsts = (
        pairs.join(keys, [*LANE, "key_hash"], "left_semi")
        .join(_before(listed), "half_id", "left_anti")
        .groupBy("half_id", *LANE, "key_hash", "rank")
        .agg(F.min("offset").alias("offset"), F.min_by("published_at", "offset").alias("time"))
    )
    lane = Window.partitionBy(*LANE, "key_hash").orderBy("offset")
    latest = F.max(F.struct("rank", "offset", "half_id"))
    behind = firsts.withColumn(
        "behind", latest.over(lane.rowsBetween(Window.unboundedPreceding, -1))
    )
    return behind.where(F.col("behind.rank") > F.col("rank"))


def drifts(suspects: DataFrame, pairs: DataFrame, listed: DataFrame) -> DataFrame:
    """Return each message none of whose records names its place in the order of commits.

    Where a manifest lacks some of its range, its own entries tell the places.
    """
    stated = listed.select("half_id", F.col("shard").alias("named_shard"), "batch_no", "index")
    drifting = suspects.where("late IS NULL")
    excused = drifting.where("NOT whole").join(stated, [*HEADER, "half_id"], "left_semi")
    wrong = drifting.join(_before(listed), "half_id", "left_anti").join(
        excused.select(*PLACE), [*PLACE], "left_anti"
    )
    first = F.min_by(F.struct("*"), F.struct(*PLACE)).alias("first")
    of_message = wrong.groupBy("half_id").agg(first, F.count("*").alias("wrong"))
    copies = pairs.join(of_message.select("half_id"), "half_id", "left_semi")
    counted = copies.groupBy("half_id").agg(F.count("*").alias("copies"))
    return of_message.join(counted, "half_id").where("copies = wrong").select("first.*")


def disordered(
    inverted: DataFrame, drifting: DataFrame, commits: DataFrame, records: DataFrame
) -> DataFrame:
    """Return one row a message that is out of order, has a wrong header, or both; with its id."""
    header = F.concat_ws(".", *HEADER).alias("header")
    columns = ("half_id", *LANE, "offset", "key_hash")
    rows = inverted.select(*columns, "time", "behind").unionByName(
        drifting.select(*columns, F.col("published_at").alias("time"), header),
        allowMissingColumns=True,
    )
    first = F.min_by(F.struct("*"), F.struct(F.col("behind").isNull(), *PLACE)).alias("first")
    found = rows.groupBy("half_id").agg(first, F.max("header").alias("named"))
    ids = records.select(*PLACE, "message_id")
    other = ids.select(
        "topic", "partition", F.col("offset").alias("behind_offset"), F.col("message_id")
    ).withColumnRenamed("message_id", "behind_id")
    position = F.struct("xid", "n")
    earlier = commits.select(
        F.col("half_id").alias("behind_half_id"), position.alias("behind_position")
    )
    return (
        found.select(
            *("first.*", "named", F.col("first.behind.offset").alias("behind_offset")),
            F.col("first.behind.half_id").alias("behind_half_id"),
        )
        .join(ids, [*PLACE])
        .join(commits.select("half_id", "xid", "n", "committed_at"), "half_id")
        .join(other, ["topic", "partition", "behind_offset"], "left")
        .join(earlier, "behind_half_id", "left")
        .orderBy(*PLACE)
    )


def of_row(row: Any) -> Finding:
    """Return the finding of a message of ``disordered``; of two faults the worse one names it."""
    inverted = row["behind"] is not None
    return Finding(
        finding_class=FindingClass.ORDER_INVERSION if inverted else FindingClass.POSITION_DRIFT,
        subject=f"message:{row['message_id']}",
        half_id=row["half_id"],
        message_id=row["message_id"],
        topic=row["topic"],
        partition=row["partition"],
        offset=row["offset"],
        key_hash=row["key_hash"],
        shard=row["shard"],
        position=(row["xid"], row["n"]),
        decision=Decision.COMMIT.value,
        decided_at=row["committed_at"],
        record_time=row["time"],
        detail=_behind(row) | _header(row),
    )


def _behind(row: Any) -> dict[str, Any]:
    """Return the evidence of an inversion: the later commit that lies before it, and how far."""
    behind = row["behind"]
    if behind is None:
        return {}
    return {
        "behind": row["behind_id"],
        "behind_offset": behind["offset"],
        "behind_position": list(row["behind_position"]),
        "offsets_apart": row["offset"] - behind["offset"],
    }


def _header(row: Any) -> dict[str, Any]:
    """Return the evidence of a drift: what the header names in place of the position."""
    if row["named"] is None:
        return {}
    return {"outbox_batch": row["named"] or "absent"}


def _drifts() -> Column:
    """Tell whether a header does not name its commit's place.

    Excused are records of releases and repairs, and of batches older than the manifests kept.
    """
    own = F.col("named_shard") % SHARDS == F.col("shard")
    within = (F.col("rank") > F.col("from_rank")) & (F.col("rank") <= F.col("to_rank"))
    index = F.col("rank") - F.col("from_rank") - 1
    placed = F.col("in_turn") & within & (F.col("index") == index)
    old = F.col("batch_no") < F.col("first_batch")
    return ~F.coalesce(own & (placed | ~F.col("in_turn") | old), F.lit(False))


def _before(listed: DataFrame) -> DataFrame:
    """Return the messages that Kafka had before PostgreSQL listed them."""
    return listed.where(F.col("status") == Listed.PUBLISHED_BEFORE.value).select("half_id")
