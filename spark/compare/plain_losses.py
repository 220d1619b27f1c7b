"""Losses beyond doubt, for a disaster with very many of them: judged in Spark by a join.

To look a message up costs a hundred times as much. A manifest lists a plain loss as published, no
topic has a record of it, and nothing explains that: its topic was read, and its record cannot have
expired. ``diagnosis`` finds it LOST too, whatever else is known of it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from outbox.messages.message_id import SHARDS
from spark.columns import schemas
from spark.compare.decision_table import Decision
from spark.compare.expiry import PUBLISHED
from spark.compare.facts import Judgement
from spark.findings.finding import SOURCE
from spark.findings.finding_class import Cause, Kind

FOUND: Final = (
    *("half_id", "message_id", "topic", "producer_group"),
    f"""lower(lpad(
        hex(xxhash64('{Kind.MISSING.value}', '{SOURCE}', concat('message:', message_id))), 16, '0'
    )) AS finding_id""",
    f"half_id & {SHARDS - 1} AS shard",
    f"'{Kind.MISSING.value}' AS kind",
    f"'{Cause.LOST_PUBLISHED.finding_class.value}' AS class",
    f"'{Cause.LOST_PUBLISHED.detail}' AS detail",
    f"'{Decision.COMMIT.value}' AS decision",
    "committed_at AS decided_at",
    """to_json(struct(
        0 AS copies,
        array(listed) AS manifests,
        CASE WHEN offset IS NOT NULL THEN struct(partition, offset) END AS recorded
    )) AS evidence""",
)
"""The columns of ``schemas.FINDINGS`` that depend on the message.

The id is that of ``Finding.finding_id``; Spark's hash chains its arguments with the same seed."""


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
    doubtful = judgement.unread_topics | judgement.baselines.keys()
    published = listings.where(F.col("status").isin(*PUBLISHED)).groupBy("half_id")
    named = (
        judged.where("copies + ahead = 0")
        .select("half_id", "committed_at")
        .join(published.agg(F.expr("max(struct(batch_no, index, status)) AS listed")), "half_id")
        .join(stored.where(~F.col("topic").isin(*doubtful)), "half_id")
    )
    lost = _unexpired(named, judgement).selectExpr(*FOUND)
    if not accepted:
        return lost
    ids = schemas.frame_of(lost.sparkSession, [{"text": each} for each in accepted], schemas.TEXTS)
    return lost.join(F.broadcast(ids), lost["finding_id"] == ids["text"], "left_anti")


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
    return placed.where(whole | F.expr("offset >= coalesce(start, 0)"))
