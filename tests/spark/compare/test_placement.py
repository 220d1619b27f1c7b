"""The steps of the comparison on frames of a few rows: standing, counts and suspects."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from outbox.messages.message_id import HalfId
from spark.columns import commit_rank, schemas, segments, slot
from spark.compare import placement
from tests.spark.fixtures_markers import ON_SPARK

pytestmark = ON_SPARK

NOON: Final = datetime(2026, 1, 1, tzinfo=UTC)
SHARD: Final = 5
CUT_BATCH: Final = 20
RECORDS = pa.schema(
    [
        ("half_id", pa.int64()),
        ("shard", pa.int32()),
        ("batch_no", pa.int64()),
        ("digest", pa.int64()),
    ]
)
BATCHES: Final = (
    "shard int, batch_no bigint, from_rank bigint, to_rank bigint, in_turn boolean, whole boolean"
)
COMMITS = pa.schema(
    [
        ("shard", pa.int32()),
        ("xid", pa.int64()),
        ("size", pa.int64()),
        ("committed_at", pa.timestamp("us", "UTC")),
        ("half_ids", pa.list_(pa.int64())),
        ("content_digests", pa.list_(pa.int64())),
    ]
)


def half(number: int, shard: int = SHARD) -> HalfId:
    """Return a half id of that shard."""
    return HalfId(number << 15 | shard)


def cuts(session: SparkSession) -> DataFrame:
    """Return the cut of the one shard: batch 20, position (9, 2), baseline (3, 0)."""
    row = {"shard": SHARD, "cut_batch": CUT_BATCH, "newest_batch": CUT_BATCH + 5}
    return schemas.frame_of(
        session, [{**row, "cut_xid": 9, "cut_n": 2, "base_xid": 3, "base_n": 0}], schemas.SHARD_CUTS
    )


def records(session: SparkSession, *rows: tuple[HalfId, int | None, int]) -> DataFrame:
    """Return records of a half id, batch and digest, beside the cut of their shard."""
    given = [
        {"half_id": half_id, "shard": SHARD, "batch_no": batch_no, "digest": digest}
        for half_id, batch_no, digest in rows
    ]
    read = schemas.frame_of(session, given, RECORDS).withColumn("again", F.lit(False))
    return slot.with_ahead(read, cuts(session))


def commits(session: SparkSession, *rows: tuple[int, list[tuple[HalfId, int]]]) -> DataFrame:
    """Return commits of an xid and its (half id, digest), beside the cut of their shard."""
    given = [
        {"shard": SHARD, "xid": xid, "committed_at": NOON, "size": len(pairs)}
        | {"half_ids": [i for i, _ in pairs], "content_digests": [d for _, d in pairs]}
        for xid, pairs in rows
    ]
    log = schemas.frame_of(session, given, COMMITS)
    no_batches = session.createDataFrame([], BATCHES)
    cut_up = segments.segments(commit_rank.flushes(log), no_batches, cuts(session))
    return segments.open_commits(log, cut_up)


def test_a_commit_is_judged_up_to_the_cut_in_the_middle_of_a_flush(session: SparkSession) -> None:
    flush = [(half(number), 0) for number in (2, 3, 4)]
    found = commits(session, (3, [(half(1), 0)]), (9, flush), (10, [(half(5), 0)])).collect()
    assert {row["half_id"] >> 15: row["standing"] for row in found} == {
        1: segments.JUDGED,
        2: segments.JUDGED,
        3: segments.JUDGED,
        4: segments.IN_FLIGHT,
        5: segments.IN_FLIGHT,
    }
    (old,) = commits(session, (2, [(half(6), 0)])).collect()
    assert old["standing"] == segments.BASELINE


def test_only_what_is_once_on_both_sides_with_equal_digests_is_above_suspicion(
    session: SparkSession,
) -> None:
    clean, lost, doubled, altered, phantom, on_its_way, published = map(half, range(7))
    judged = [(each, 7) for each in (clean, lost, doubled, altered, published)]
    both = placement.suspects(
        commits(session, (8, judged), (10, [(on_its_way, 7)])),
        placement.count_copies(
            records(
                session,
                (clean, 1, 7),
                *[(doubled, 1, 7)] * 2,
                (altered, 1, 8),
                (phantom, 1, 7),
                (published, CUT_BATCH + 1, 7),
            )
        ),
    )
    found = both.collect()
    assert {row["half_id"] for row in found} == {lost, doubled, altered, phantom}
