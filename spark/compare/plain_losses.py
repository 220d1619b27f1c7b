"""Losses beyond doubt, for a disaster with very many of them: judged in Spark by a join.

To look a message up costs a hundred times as much. A manifest lists a plain loss as published, no
topic has a record of it, and nothing explains that: its topic was read, and its record cannot have
expired. ``diagnosis`` finds it LOST too, whatever else is known of it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from outbox.messages.message_id import SHARDS
from spark.columns import schemas
from spark.compare.decision_table import Decision
from spark.compare.expiry import PUBLISHED
from spark.compare.facts import Judgement
from spark.findings.finding import SOURCE
from spark.findings.finding_class import Cause, Kind

LOST: Final = Cause.LOST_PUBLISHED


def plain_losses(
    judged: DataFrame,
    listings: DataFrame,
    stored: DataFrame,
    judgement: Judgement,
    accepted: Collection[str],
) -> DataFrame:
    """Return those of the judged suspects that are plainly lost, as findings without a severity.

    ``stored`` are the names of messages in topics that are not compacted, and their recorded
    places. Findings that an operator has ``accepted`` are left out, because they do not count.
    """
    absent = judged.where(F.expr("copies + ahead") == 0)
    doubtful = judgement.unread_topics | judgement.baselines.keys()
    published = listings.where(F.col("status").isin(*PUBLISHED)).groupBy("half_id")
    listed = published.agg(F.max(F.struct("batch_no", "index", "status")).alias("listed"))
    named = absent.select("half_id", "committed_at").join(listed, "half_id").join(stored, "half_id")
    lost = _unexpired(named, judgement).where(~F.col("topic").isin(*doubtful))
    lost = _without(lost, "message_id", judgement.earlier.expired)
    found = lost.withColumn("finding_id", _finding_id())
    return _without(found, "finding_id", accepted).select(*_columns())


def _unexpired(named: DataFrame, judgement: Judgement) -> DataFrame:
    """Return the messages of whose topic nothing has expired, or not their recorded place."""
    starts = [
        {"topic": partition.topic, "partition": partition.number, "start": start}
        for partition, start in judgement.starts.items()
        if start > 0
    ]
    frame = schemas.frame_of(named.sparkSession, starts, schemas.STARTS)
    placed = named.join(F.broadcast(frame), ["topic", "partition"], "left")
    whole = ~F.col("topic").isin(*{each["topic"] for each in starts})
    return placed.where(whole | (F.col("offset") >= F.coalesce("start", F.lit(0))))


def _without(rows: DataFrame, column: str, values: Collection[str]) -> DataFrame:
    if not values:
        return rows
    named = schemas.frame_of(rows.sparkSession, [{"text": v} for v in values], schemas.TEXTS)
    return rows.join(F.broadcast(named), rows[column] == named["text"], "left_anti")


def _finding_id() -> Column:
    """Return the id as ``Finding.finding_id`` computes it; Spark's hash chains with that seed."""
    subject = F.concat(F.lit("message:"), "message_id")
    digest = F.xxhash64(F.lit(Kind.MISSING.value), F.lit(SOURCE), subject)
    return F.lower(F.lpad(F.hex(digest), 16, "0"))


def _columns() -> tuple[Column | str, ...]:
    """Return the columns of ``schemas.FINDINGS`` that depend on the message."""
    place = F.when(F.col("offset").isNotNull(), F.struct("partition", "offset"))
    manifests = F.array("listed").alias("manifests")
    evidence = F.struct(F.lit(0).alias("copies"), manifests, place.alias("recorded"))
    return (
        *("half_id", "finding_id", "message_id", "topic", "producer_group"),
        F.col("half_id").bitwiseAND(SHARDS - 1).alias("shard"),
        F.lit(Kind.MISSING.value).alias("kind"),
        F.lit(LOST.finding_class.value).alias("class"),
        F.lit(LOST.detail).alias("detail"),
        F.lit(Decision.COMMIT.value).alias("decision"),
        F.col("committed_at").alias("decided_at"),
        F.to_json(evidence).alias("evidence"),
    )
