"""Matches each judged commit with the records of its content, for the checks of order and place.

Where the checksums of both sides are equal, a record represents its commit too and is not joined
with it. A repair's record is included and marked: it was published out of turn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame

from spark.columns.commit_rank import BATCH_FACTS, with_batches
from spark.columns.frames import Frames
from spark.columns.segments import JUDGED
from spark.columns.staging import stage_frame
from spark.compare.bucket_checksums import (
    Mismatch,
    equal_records,
    mismatched_commits,
    mismatched_records,
)

PLACE: Final = ("topic", "partition", "offset")
"""The place of a record."""
HEADER: Final = ("named_shard", "batch_no", "index")
"""The place that a record claims."""
RECORD: Final = (
    *("half_id", "digest", *PLACE, "published_at", "key_hash", "home", "redriven"),
    *("shard AS named_shard", "batch_no", "index"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """One row per record of a judged commit: its place and its batch header.

    ``shard`` is the commit's shard, ``named_shard`` the one that the header names.
    """

    plain: DataFrame
    ranked: DataFrame
    """The same with the commit's rank and the facts about the batch; costs one more join.
    ``proven``: the header is known to name the commit's place."""


def matches_of(frames: Frames, mismatch: Mismatch | None, stage_uri: str) -> Matches:
    """Match each new judged commit with the records of its content."""
    if mismatch is not None and mismatch.is_empty:
        return _equal_matches(frames.records, frames.batches)
    commits = frames.commits if mismatch is None else mismatched_commits(frames.commits, mismatch)
    published = mismatched_records(frames.records, mismatch).where("NOT ahead")
    in_batches = with_batches(published, frames.batches)
    joined = stage_frame(_joined_matches(commits, in_batches), f"{stage_uri}/matches")
    if mismatch is None:
        return Matches(plain=joined, ranked=joined)
    equal = _equal_matches(equal_records(frames.records, mismatch), frames.batches)
    return Matches(
        plain=equal.plain.unionByName(joined.select(*equal.plain.columns)),
        ranked=equal.ranked.unionByName(joined),
    )


def _equal_matches(records: DataFrame, batches: DataFrame) -> Matches:
    """Return the matches of records that represent their commits: what they name is true."""
    return Matches(
        plain=records.selectExpr("shard", *RECORD),
        ranked=with_batches(records, batches).selectExpr(
            *("shard", *RECORD, *BATCH_FACTS),
            "from_rank + index + 1 AS rank",
            "true AS proven",
        ),
    )


def _joined_matches(commits: DataFrame, records: DataFrame) -> DataFrame:
    judged = commits.where(f"standing = '{JUDGED}'").select("half_id", "digest", "shard", "rank")
    published = records.selectExpr(*RECORD, *BATCH_FACTS, "false AS proven")
    return judged.join(published, ["half_id", "digest"])
