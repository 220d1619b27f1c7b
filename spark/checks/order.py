"""Checks that records are in the order of their commits, and name their place in it (I6).

Ranks come from the commit log. The relay's batch header is judged, and trusted only where the
checksums have proven it. One cheap pass over all matches flags what may be wrong; only the keys and
batches of flagged rows are examined in detail. Ranks are comparable within a shard, and all
messages of a key belong to one shard.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from outbox.messages.message_id import SHARDS
from spark.columns import manifests
from spark.columns.collected_times import in_utc
from spark.columns.staging import stage_counted
from spark.compare.decision_table import Decision, Listed
from spark.compare.matches import HEADER, PLACE
from spark.findings.finding import Finding
from spark.findings.finding_class import Cause

GROUP: Final = ("topic", "partition", "shard")
"""Within these columns offsets rise with ranks, except for records that were held."""


def findings(
    matches: DataFrame,
    commits: DataFrame,
    records: DataFrame,
    listed: DataFrame,
    unlisted: Collection[int],
    stage_uri: str,
) -> Iterator[Finding]:
    """Yield a finding for every message out of order or with a wrong place; by place, lazily.

    ``listed`` are the manifests. Entries are decoded only if something was flagged.
    """
    promised = ordered_matches(matches, unlisted)
    suspects, seen = stage_counted(
        flagged_matches(promised, listed), f"{stage_uri}/disorder", rows=F.count("*")
    )
    if not seen["rows"]:
        return
    entries = manifests.entries(listed)
    inverted = inversions(suspects, promised, entries)
    drifting = drifts(suspects, promised, entries)
    found = disordered_messages(inverted, drifting, commits, records)
    yield from map(disorder_finding, found.toLocalIterator(prefetchPartitions=True))


def ordered_matches(matches: DataFrame, unlisted: Collection[int]) -> DataFrame:
    """Return the matches whose order is promised: neither repairs nor what no manifest lists.

    The newest manifests of a shard of ``unlisted`` are lost, and with them the place of a record.
    """
    free = F.col("batch_no").isNull() & F.col("shard").isin(list(unlisted))
    return matches.where(~F.col("redriven") & ~free)


def flagged_matches(matches: DataFrame, listed: DataFrame) -> DataFrame:
    """Return the matches after a later commit of their group, or with a wrong batch header."""
    kept = listed.where("intact").groupBy("shard").agg(F.min("batch_no").alias("first_batch"))
    doubtful = matches.where("NOT proven").join(F.broadcast(kept), "shard", "left")
    drifting = doubtful.where(_is_drifting()).drop("first_batch")
    return late_matches(matches).unionByName(drifting, allowMissingColumns=True)


def late_matches(matches: DataFrame) -> DataFrame:
    """Return the matches with a key that come after a later commit of their group.

    Groups are compared by their hash, which sorts faster. Groups with the same hash are separated
    when the flagged rows are examined.
    """
    columns = (*GROUP, "key_hash", "offset", "rank")
    keyed = matches.where(F.col("key_hash").isNotNull()).select(*columns)
    group = Window.partitionBy("group").orderBy("offset")
    before = F.max("rank").over(group.rowsBetween(Window.unboundedPreceding, -1))
    ranked = keyed.withColumn("group", F.xxhash64(*GROUP)).withColumn("before", before)
    behind = ranked.where(F.col("before") > F.col("rank"))
    return behind.select(*columns, F.lit(True).alias("late"))


def inversions(suspects: DataFrame, matches: DataFrame, listed: DataFrame) -> DataFrame:
    """Return each message that comes after a later commit of its key, with that other message.

    Only first copies are judged, without those that Kafka had before PostgreSQL listed them.
    """
    keys = suspects.where("late").select(*GROUP, "key_hash").distinct()
    firsts = (
        matches.join(keys, [*GROUP, "key_hash"], "left_semi")
        .join(_published_before(listed), "half_id", "left_anti")
        .groupBy("half_id", *GROUP, "key_hash", "rank")
        .agg(F.min("offset").alias("offset"), F.min_by("published_at", "offset").alias("time"))
    )
    group = Window.partitionBy(*GROUP, "key_hash").orderBy("offset")
    latest = F.max(F.struct("rank", "offset", "half_id"))
    behind = firsts.withColumn(
        "behind", latest.over(group.rowsBetween(Window.unboundedPreceding, -1))
    )
    return behind.where(F.col("behind.rank") > F.col("rank"))


def drifts(suspects: DataFrame, matches: DataFrame, listed: DataFrame) -> DataFrame:
    """Return each message of which no record names its place in the order of commits.

    Where a manifest lacks a part of its range, its entries give the places.
    """
    stated = listed.select("half_id", F.col("shard").alias("named_shard"), "batch_no", "index")
    drifting = suspects.where("late IS NULL")
    excused = drifting.where("NOT whole").join(stated, [*HEADER, "half_id"], "left_semi")
    wrong = drifting.join(_published_before(listed), "half_id", "left_anti").join(
        excused.select(*PLACE), [*PLACE], "left_anti"
    )
    first = F.min_by(F.struct("*"), F.struct(*PLACE)).alias("first")
    of_message = wrong.groupBy("half_id").agg(first, F.count("*").alias("wrong"))
    copies = matches.join(of_message.select("half_id"), "half_id", "left_semi")
    counted = copies.groupBy("half_id").agg(F.count("*").alias("copies"))
    return of_message.join(counted, "half_id").where("copies = wrong").select("first.*")


def disordered_messages(
    inverted: DataFrame, drifting: DataFrame, commits: DataFrame, records: DataFrame
) -> DataFrame:
    """Return one row per message that is out of order, has a wrong header, or both; with its id."""
    header = F.concat_ws(".", *HEADER).alias("header")
    columns = ("half_id", *GROUP, "offset", "key_hash")
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


def disorder_finding(row: Any) -> Finding:
    """Return the finding of a row of ``disordered_messages``; the worse of two faults names it."""
    inverted = row["behind"] is not None
    return Finding(
        cause=Cause.ORDER_INVERSION_KEY if inverted else Cause.POSITION_DRIFT_HEADER,
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
        decided_at=in_utc(row["committed_at"]),
        record_time=in_utc(row["time"]),
        evidence=_inversion_evidence(row) | _drift_evidence(row),
    )


def _inversion_evidence(row: Any) -> dict[str, Any]:
    """Return the evidence of an inversion: the later commit before it, and the distance."""
    behind = row["behind"]
    if behind is None:
        return {}
    return {
        "behind": row["behind_id"],
        "behind_offset": behind["offset"],
        "behind_position": list(row["behind_position"]),
        "offsets_apart": row["offset"] - behind["offset"],
    }


def _drift_evidence(row: Any) -> dict[str, Any]:
    """Return the evidence of a drift: what the header names instead of the position."""
    if row["named"] is None:
        return {}
    return {"outbox_batch": row["named"] or "absent"}


def _is_drifting() -> Column:
    """Whether a header does not name its commit's place.

    Records of releases, of repairs and of batches older than the kept manifests, if any, are
    excused.
    """
    own = F.col("named_shard") % SHARDS == F.col("shard")
    within = (F.col("rank") > F.col("from_rank")) & (F.col("rank") <= F.col("to_rank"))
    index = F.col("rank") - F.col("from_rank") - 1
    placed = F.col("in_turn") & within & (F.col("index") == index)
    old = F.coalesce(F.col("batch_no") < F.col("first_batch"), F.col("batch_no").isNotNull())
    return ~F.coalesce(own & (placed | ~F.col("in_turn") | old), F.lit(False))


def _published_before(listed: DataFrame) -> DataFrame:
    """Return the messages that Kafka had before PostgreSQL listed them."""
    return listed.where(F.col("status") == Listed.PUBLISHED_BEFORE.value).select("half_id")
