"""The commit log divided into segments, before its arrays are exploded.

A segment is a run of commits of one row that have the same standing and are in the same batch of
the relay. There are few more segments than rows and batches. So the standing, the counts and the
expected slots are computed per segment, at a cost far below that of one row per message.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark.columns import commit_rank
from spark.columns.slot import slot_at

IN_FLIGHT: Final = "in_flight"
JUDGED: Final = "judged"
BASELINE: Final = "baseline"
"""Standing of a commit: above its shard's cut, at or below it, older than all kept manifests."""


def segments(flushes: DataFrame, batches: DataFrame, cuts: DataFrame) -> DataFrame:
    """Return the segments that no earlier run has judged.

    Where two batches claim a commit, the batch that begins later gets it. A wrong claim gives a
    slot that contains no such record.
    """
    block = f"rank DIV {commit_rank.BLOCK}"
    edges = _edges_of_rows(flushes, cuts).unionByName(
        _edges_of_batches(batches), allowMissingColumns=True
    )
    running = f"OVER (PARTITION BY shard, {block} ORDER BY rank, batch ROWS UNBOUNDED PRECEDING)"
    return (
        edges.selectExpr(
            *("shard", "rank"),
            f"max(flush) {running} AS flush",
            f"max(batch) {running} AS batch",
            f"lead(rank) OVER (PARTITION BY shard, {block} ORDER BY rank, batch) AS next",
        )
        .selectExpr(
            *("shard", "rank", "batch", "flush.*"),
            "int(rank - flush.before) AS skip",
            f"""int(
                least(flush.row_end, next, ({block} + 1) * {commit_rank.BLOCK}) - rank
            ) AS size""",
        )
        .where("size > 0 AND skip >= seen")
        .selectExpr(
            *("shard", "xid", "committed_at", "rank", "skip", "size"),
            f"""CASE
                WHEN skip < base THEN '{BASELINE}'
                WHEN skip < cut THEN '{JUDGED}'
                ELSE '{IN_FLIGHT}'
            END AS standing""",
            "CASE WHEN rank < batch.to_rank THEN batch.batch_no END AS batch_no",
            "CASE WHEN rank < batch.to_rank THEN rank - batch.from_rank END AS index",
        )
    )


def open_commits(commits: DataFrame, segments: DataFrame) -> DataFrame:
    """Return one row per committed message: id, digest, position, rank, standing, slot.

    A segment has one digest per commit even where the row has too few of them. The digests are
    exploded, not the ids, because the bucket checksums do not read the ids.
    """
    each = (
        commits.select("shard", "xid", "half_ids", "content_digests")
        .join(segments, ["shard", "xid"])
        .selectExpr(
            "*",
            """posexplode(CASE
                WHEN size(content_digests) >= skip + size
                THEN slice(content_digests, skip + 1, size)
                ELSE array_repeat(bigint(NULL), size)
            END) AS (place, digest)""",
        )
    )
    slot = slot_at(F.col("batch_no"), F.col("index") + F.col("place"))
    return each.withColumn("slot", slot).selectExpr(
        "get(half_ids, skip + place) AS half_id",
        *("digest", "shard", "xid"),
        "skip + place + 1 AS n",
        "committed_at",
        "rank + place + 1 AS rank",
        *("standing", "slot"),
    )


def standings() -> dict[str, Column]:
    """Return the numbers of commits by standing, as aggregates of segments."""
    return {
        each: F.expr(f"coalesce(sum(if(standing = '{each}', size, 0)), 0)")
        for each in (JUDGED, IN_FLIGHT, BASELINE)
    }


def _edges_of_rows(flushes: DataFrame, cuts: DataFrame) -> DataFrame:
    """Return the ranks at which a row begins, reaches a position of the cuts or enters a block.

    The row is given with the number of its commits up to each position of the cuts.
    """
    up_to = {
        name: f"""CASE
            WHEN xid < {name}_xid THEN size
            WHEN xid = {name}_xid THEN least({name}_n, size)
            ELSE 0
        END AS {name}"""
        for name in ("seen", "base", "cut")
    }
    counted = (
        flushes.where("size > 0")
        .join(F.broadcast(cuts), "shard", "left")
        .selectExpr(
            "shard", "before", "before + size AS row_end", "xid", "committed_at", *up_to.values()
        )
    )
    return (
        counted.selectExpr(
            "shard",
            "struct(before, row_end, xid, committed_at, seen, base, cut) AS flush",
            f"""explode(concat(
            {_blocks("before", "row_end")},
            array(before + seen, before + base, before + cut)
        )) AS edge""",
        )
        .selectExpr("shard", "greatest(edge, flush.before) AS rank", "flush")
        .where("rank < flush.row_end")
    )


def _edges_of_batches(batches: DataFrame) -> DataFrame:
    """Return the ranks at which a batch begins, enters a block or has ended."""
    edges = batches.where("in_turn AND whole").selectExpr(
        "shard",
        "struct(from_rank, to_rank, batch_no) AS batch",
        f"explode(concat({_blocks('from_rank', 'to_rank')}, array(to_rank))) AS edge",
    )
    return edges.selectExpr(
        "shard",
        "greatest(edge, batch.from_rank) AS rank",
        "CASE WHEN edge < batch.to_rank THEN batch END AS batch",
    )


def _blocks(begin: str, end: str) -> str:
    """Return the SQL for the first ranks of the blocks of a range, of which the end is no part."""
    block = commit_rank.BLOCK
    return f"sequence({begin} DIV {block} * {block}, {end} - 1, bigint({block}))"
