"""Each judged commit beside the records of its very content: what order and places are told from.

Where the folds of both sides are equal, a record stands for its commit as well, and is not joined
with it. A repair's record keeps its place here and is marked: it was published out of turn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from spark.columns.commit_rank import BATCH_FACTS, with_batches
from spark.columns.frames import Frames
from spark.columns.segments import JUDGED
from spark.columns.staging import staged
from spark.compare.bucket_checksums import Mismatch, even_records, odd_commits, odd_records

PLACE: Final = ("topic", "partition", "offset")
"""Where a record lies."""
HEADER: Final = ("named_shard", "batch_no", "index")
"""Where a record says that it belongs."""
RECORD: Final = ("half_id", "digest", *PLACE, "published_at", "key_hash", "home", "redriven")


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """One row a record of a judged commit: its place and its batch header.

    ``shard`` is the commit's own, ``named_shard`` the one that the header names.
    """

    plain: DataFrame
    ranked: DataFrame
    """The same with the commit's rank and what is known of the batch. ``proven`` tells that the
    header is known to name the commit's place. Costs a join more."""


def matches_of(frames: Frames, odd: Mismatch | None, stage_uri: str) -> Matches:
    """Lay each judged commit that is new beside the records of its content."""
    if odd is not None and odd.is_nothing:
        return _even(frames.records, frames.batches)
    commits = frames.new_commits if odd is None else odd_commits(frames.new_commits, odd)
    published = odd_records(frames.records, odd).where(~F.col("ahead"))
    beside = with_batches(published, frames.batches)
    apart = staged(_joined(commits, beside), f"{stage_uri}/pairs")
    if odd is None:
        return Matches(plain=apart, ranked=apart)
    even = _even(even_records(frames.records, odd), frames.batches)
    return Matches(
        plain=even.plain.unionByName(apart.select(*even.plain.columns)),
        ranked=even.ranked.unionByName(apart),
    )


def _even(records: DataFrame, batches: DataFrame) -> Matches:
    """Return records that stand for their commits: what they name is true."""
    rank = (F.col("from_rank") + F.col("index") + 1).alias("rank")
    named = F.col("shard").alias("named_shard")
    told = ("shard", *RECORD, named, "batch_no", "index")
    facts = (*BATCH_FACTS, rank, F.lit(True).alias("proven"))
    return Matches(
        plain=records.select(*told), ranked=with_batches(records, batches).select(*told, *facts)
    )


def _joined(commits: DataFrame, records: DataFrame) -> DataFrame:
    judged = commits.where(F.col("standing") == JUDGED).select("half_id", "digest", "shard", "rank")
    published = records.select(
        *RECORD, *(F.col("shard").alias("named_shard"), "batch_no", "index", *BATCH_FACTS)
    )
    return judged.join(published, ["half_id", "digest"]).withColumn("proven", F.lit(False))
