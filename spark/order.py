"""Whether records lie in the order of their commits, and name their place in it (I6).

Positions are the commit log's: the relay's batch header is judged, not believed. One cheap pass
over all pairs flags what may be wrong; only the keys and batches of flagged rows are looked at
closely. Within a shard positions can be compared, and all messages of a key are of one shard.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from outbox.message_id import SHARDS
from spark import manifests
from spark.classify import Decision, Listed
from spark.finding_classes import FindingClass
from spark.findings import Finding
from spark.pairs import PLACE, batches, flushes
from spark.stage import staged

LANE: Final = ("topic", "partition", "shard")
"""Within these, offsets rise with positions, save for records that were held."""
HEADER: Final = ("named_shard", "batch_no", "index")


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
    promised, rows = judged(pairs, unlisted), flushes(commits)
    suspects = staged(flagged(promised, batches(listed, rows), rows), f"{stage_uri}/disorder")
    if suspects.isEmpty():
        return
    entries = manifests.entries(listed)
    inverted = inversions(suspects, promised, entries)
    drifting = drifts(suspects, promised, entries)
    found = disordered(inverted, drifting, records)
    yield from map(of_row, found.toLocalIterator(prefetchPartitions=True))


def judged(pairs: DataFrame, unlisted: Collection[int]) -> DataFrame:
    """Return the pairs whose order is promised: a repair is not, nor what no manifest lists.

    A shard of ``unlisted`` publishes at least once, or has done so; its records without a batch are
    of that time.
    """
    free = F.col("batch_no").isNull() & F.col("shard").isin(list(unlisted))
    return pairs.where(~F.col("redriven") & ~free)


def flagged(pairs: DataFrame, batches: DataFrame, flushes: DataFrame) -> DataFrame:
    """Return the pairs that lie behind a later commit of their lane, or do not name their place."""
    keyed = F.col("key_hash").isNotNull()
    before = Window.partitionBy(*LANE).orderBy("offset").rowsBetween(Window.unboundedPreceding, -1)
    latest = F.max(F.when(keyed, _position())).over(before)
    late = F.coalesce(keyed & (latest > _position()), F.lit(False))
    placed = (
        pairs.withColumn("late", late)
        .join(F.broadcast(flushes), ["shard", "xid"], "left")
        .join(F.broadcast(_named(batches)), ["named_shard", "batch_no"], "left")
        .join(F.broadcast(batches.select("shard", "first_batch").distinct()), "shard", "left")
    )
    marked = placed.withColumn("drifts", _drifts())
    return marked.where("late OR drifts").select(*pairs.columns, "late", "drifts", "whole")


def inversions(suspects: DataFrame, pairs: DataFrame, listed: DataFrame) -> DataFrame:
    """Return each message that lies behind a later commit of its key, and that other message.

    Judged are first copies, save for those that Kafka had before PostgreSQL listed them here.
    """
    keys = suspects.where("late").select(*LANE, "key_hash").distinct()
    firsts = (
        pairs.join(keys, [*LANE, "key_hash"], "left_semi")
        .join(_before(listed), "half_id", "left_anti")
        .groupBy("half_id", *LANE, "key_hash", "xid", "n", "committed_at")
        .agg(F.min("offset").alias("offset"), F.min_by("published_at", "offset").alias("time"))
    )
    lane = Window.partitionBy(*LANE, "key_hash").orderBy("offset")
    latest = F.max(F.struct("xid", "n", "offset", "half_id"))
    behind = firsts.withColumn(
        "behind", latest.over(lane.rowsBetween(Window.unboundedPreceding, -1))
    )
    return behind.where(F.struct("behind.xid", "behind.n") > _position())


def drifts(suspects: DataFrame, pairs: DataFrame, listed: DataFrame) -> DataFrame:
    """Return each message none of whose records names its place in the order of commits.

    Where a manifest lacks some of its range, its own entries tell the places.
    """
    stated = listed.select("half_id", F.col("shard").alias("named_shard"), "batch_no", "index")
    drifting = suspects.where("drifts")
    excused = drifting.where("NOT whole").join(stated, [*HEADER, "half_id"], "left_semi")
    wrong = drifting.join(_before(listed), "half_id", "left_anti").join(
        excused.select(*PLACE), [*PLACE], "left_anti"
    )
    first = F.min_by(F.struct("*"), F.struct(*PLACE)).alias("first")
    of_message = wrong.groupBy("half_id").agg(first, F.count("*").alias("wrong"))
    copies = pairs.join(of_message.select("half_id"), "half_id", "left_semi")
    counted = copies.groupBy("half_id").agg(F.count("*").alias("copies"))
    return of_message.join(counted, "half_id").where("copies = wrong").select("first.*")


def disordered(inverted: DataFrame, drifting: DataFrame, records: DataFrame) -> DataFrame:
    """Return one row a message that is out of order, has a wrong header, or both; with its id."""
    header = F.concat_ws(".", *HEADER).alias("header")
    columns = ("half_id", *LANE, "offset", "key_hash", "xid", "n", "committed_at")
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
    return (
        found.select("first.*", "named", F.col("first.behind.offset").alias("behind_offset"))
        .join(ids, [*PLACE])
        .join(other, ["topic", "partition", "behind_offset"], "left")
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
        "behind_position": [behind["xid"], behind["n"]],
        "offsets_apart": row["offset"] - behind["offset"],
    }


def _header(row: Any) -> dict[str, Any]:
    """Return the evidence of a drift: what the header names in place of the position."""
    if row["named"] is None:
        return {}
    return {"outbox_batch": row["named"] or "absent"}


def _named(batches: DataFrame) -> DataFrame:
    """Return the batches as a record names them."""
    return batches.drop("first_batch").withColumnRenamed("shard", "named_shard")


def _drifts() -> Column:
    """Tell whether a header does not name its commit's place.

    Excused are records of releases and repairs, and of batches older than the manifests kept.
    """
    own = F.col("named_shard") % SHARDS == F.col("shard")
    begins, ends = F.struct("from_xid", "from_n"), F.struct("to_xid", "to_n")
    within = (_position() > begins) & (_position() <= ends)
    index = F.col("before") + F.col("n") - 1 - F.col("from_rank")
    placed = F.col("in_turn") & within & (F.col("index") == index)
    old = F.col("batch_no") < F.col("first_batch")
    return ~F.coalesce(own & (placed | ~F.col("in_turn") | old), F.lit(False))


def _position() -> Column:
    return F.struct("xid", "n")


def _before(listed: DataFrame) -> DataFrame:
    """Return the messages that Kafka had before PostgreSQL listed them."""
    return listed.where(F.col("status") == Listed.PUBLISHED_BEFORE.value).select("half_id")
