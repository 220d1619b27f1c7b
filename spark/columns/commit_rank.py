"""The rank of a message: the number of commits of its shard up to it, counted in the commit log.

The range of a relay batch is expressed in ranks as well, so that ``segments.py`` can match rows of
the commit log with batches. Ranks count from the first row that a run reads. They are valid in that
run only.

There are only 16 shards, so a shard is divided into blocks. The blocks are summed first,
the rows inside each block second. So tasks follow the rows, however many workers there are.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from outbox.messages.manifest import Kind

BATCH_FACTS: Final = ("from_rank", "to_rank", "in_turn", "whole")
"""Columns with the facts about the batch that a record names."""
BLOCK: Final = 16_384
"""Transaction ids in a block of a shard's commit log, and ranks in a block of its commits."""


def flushes(commits: DataFrame) -> DataFrame:
    """Return for each row of the commit log its size and the number of commits before it."""
    return _counted(commits.select("shard", "xid", "committed_at", "size"))


def batches(manifests: DataFrame, commits: DataFrame) -> DataFrame:
    """Return the relay's batches with messages and their range of ranks, exclusive and inclusive.

    ``whole``: the manifest has as many entries as its range has commits. ``in_turn``: the batch
    publishes a range; releases and repairs do not. There is one row per batch number. Where two
    manifests have the same number, neither gives a rank.

    A row of the commit log that is no longer kept does not count, nor do the rows before it.
    """
    ends = manifests.where("intact AND entries > 0").selectExpr(
        *("shard", "batch_no", "entries"),
        f"kind = {int(Kind.BATCH)} AS in_turn",
        "stack(2, from_xid, from_n, to_xid, to_n) AS (xid, n)",
    )
    among = ends.unionByName(commits.select("shard", "xid", "size"), allowMissingColumns=True)
    ranked = _counted(among).selectExpr(
        "*",
        """before + least(
            n,
            coalesce(max(size) OVER (PARTITION BY shard, block, xid), 0)
        ) AS rank""",
    )
    return (
        ranked.where("batch_no IS NOT NULL")
        .groupBy("shard", "batch_no")
        .agg(
            F.expr("min(rank) AS from_rank"),
            F.expr("max(rank) AS to_rank"),
            F.expr("bool_and(in_turn) AS in_turn"),
            F.expr("max(entries) = max(rank) - min(rank) AND count(*) = 2 AS whole"),
        )
    )


def with_batches(records: DataFrame, batches: DataFrame) -> DataFrame:
    """Return the records with the facts about the batch that each names; null where unknown."""
    return records.join(batches, ["shard", "batch_no"], "left")


def _counted(rows: DataFrame) -> DataFrame:
    """Return the rows with the number of commits of their shard ``before`` their transaction."""
    blocked = rows.withColumn("block", F.expr(f"xid DIV {BLOCK}"))
    earlier = (
        blocked.groupBy("shard", "block")
        .agg(F.expr("sum(size) AS size"))
        .selectExpr(
            *("shard", "block"),
            """coalesce(sum(size) OVER (
                PARTITION BY shard
                ORDER BY block
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ), 0) AS earlier""",
        )
    )
    return blocked.join(earlier, ["shard", "block"]).selectExpr(
        "* EXCEPT (earlier)",
        """earlier + coalesce(sum(size) OVER (
            PARTITION BY shard, block
            ORDER BY xid
            RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), 0) AS before""",
    )
