"""Checksums of buckets: which differ, and what is compared because of that."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark.columns import commit_rank, schemas, slot
from spark.columns.frames import Frames
from spark.columns.segments import JUDGED, open_commits, segments
from spark.compare import bucket_checksums
from tests.spark.fixtures_markers import ON_SPARK

pytestmark = ON_SPARK

DIGEST: Final = 7
ONE_BUCKET: Final = 40
NOON: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)
COLUMNS: Final = "shard int, slot bigint, digest bigint, standing string"


def dirty(commits: DataFrame, records: DataFrame) -> bool:
    """Tell whether both sides differ; all slots share a bucket."""
    (row,) = bucket_checksums.compare_buckets(commits, records, ONE_BUCKET).collect()
    return bool(row["dirty"])


def test_a_bucket_is_clean_only_if_both_sides_have_the_same_rows(session: SparkSession) -> None:
    slots = list(range(50))
    sides = (slots[::-1], slots[1:], [*slots, 7], [*slots, 7, 7], [60, *slots[1:]])
    commits = _frame(session, slots)
    found = [dirty(commits, _frame(session, records)) for records in sides]
    assert found == [False, True, True, True, True]


def test_a_row_without_a_slot_always_differs(session: SparkSession) -> None:
    """Else a record that names no place would be in no bucket, and in no comparison."""
    stray = [(None, None, DIGEST, JUDGED)]
    sides = [session.createDataFrame(stray, COLUMNS) for _ in range(2)]
    assert [
        row["dirty"]
        for row in bucket_checksums.compare_buckets(sides[0], sides[1], ONE_BUCKET).collect()
    ] == [
        True,
        True,
    ]


@pytest.mark.deep
def test_a_record_elsewhere_makes_the_bucket_of_its_message_a_mismatch(
    session: SparkSession, tmp_path: Path
) -> None:
    """All of that bucket is joined, or the message would seem to have that one record alone."""
    kept = [(half_id, half_id, 5, half_id << slot.INDEX_BITS) for half_id in (1, 2, 3)]
    columns = "half_id bigint, digest bigint, shard int, slot bigint"
    commits = session.createDataFrame(kept, columns).selectExpr(
        "*", "'judged' AS standing", "1 AS xid", "1 AS n", "current_timestamp() AS committed_at"
    )
    stray = (2, 2, None, None)
    records = session.createDataFrame([*kept, stray], columns).selectExpr(
        "*", "false AS ahead", "false AS again"
    )
    frames = Frames(
        manifests=records,
        listings=records,
        segments=records,
        batches=session.range(len(kept)),
        commits=commits,
        records=records,
        size=len(kept),
        stage_uri=tmp_path.as_uri(),
    )
    mismatch = bucket_checksums.mismatches(frames, bucket_messages=1, most_dirty=1.0)
    assert mismatch is not None
    joined = bucket_checksums.mismatched_commits(commits, mismatch).select("half_id").collect()
    assert [row["half_id"] for row in joined] == [2]
    (found,) = bucket_checksums.suspects_of(commits, records, mismatch).collect()
    assert (found["half_id"], found["copies"]) == (2, 2)


@pytest.mark.deep
@pytest.mark.parametrize("block", [1, 2, commit_rank.BLOCK])
def test_a_segment_is_in_one_batch_and_on_one_side_of_the_cut(
    session: SparkSession, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    """Commits of a batch that does not list its whole range, or of none, are in no slot."""
    monkeypatch.setattr(commit_rank, "BLOCK", block)
    batches = [(2, 1, 3, True, True), (3, 3, 4, True, False)]
    layout = layout_of(session, batches, cut_row(cut=(8, 2), base=(7, 1), seen=(7, 0)))
    found = layout.select("xid", "n", "standing", "slot").orderBy("xid", "n").collect()
    second = 2 << slot.INDEX_BITS
    assert [tuple(each) for each in found] == [
        (7, 1, "baseline", None),
        (7, 2, "judged", second),
        (7, 3, "judged", second + 1),
        (8, 1, "judged", None),
        (8, 2, "judged", None),
        (8, 3, "in_flight", None),
    ]


def committed(session: SparkSession) -> DataFrame:
    """Return two rows of three commits; the digests are 10 to 60."""
    rows = [
        (5, 7, NOON, 3, [1, 2, 3], [10, 20, 30]),
        (5, 8, NOON, 3, [4, 5, 6], [40, 50, 60]),
    ]
    columns = "shard int, xid bigint, committed_at timestamp, size bigint, "
    return session.createDataFrame(
        rows, f"{columns}half_ids array<bigint>, content_digests array<bigint>"
    )


def cut_row(
    cut: Any = (9, 0), base: Any = (0, 0), seen: Any = (None, None)
) -> dict[str, int | None]:
    """Return a cut of the shard, and up to where an earlier run has seen it."""
    row: dict[str, int | None] = {"shard": 5, "cut_batch": 9}
    for name, (xid, n) in {"cut": cut, "base": base, "seen": seen}.items():
        row |= {f"{name}_xid": xid, f"{name}_n": n}
    return row


def cuts(session: SparkSession, row: dict[str, int | None]) -> DataFrame:
    return schemas.frame_of(session, [row], schemas.SHARD_CUTS)


def layout_of(
    session: SparkSession, batches: Sequence[Any], cut: dict[str, int | None]
) -> DataFrame:
    """Return the commits of both rows with the slots that these batches give them."""
    claims = session.createDataFrame(
        [(5, *each) for each in batches],
        "shard int, batch_no bigint, from_rank bigint, to_rank bigint, in_turn boolean, "
        "whole boolean",
    )
    rows = committed(session)
    return open_commits(rows, segments(commit_rank.flushes(rows), claims, cuts(session, cut)))


def _frame(session: SparkSession, slots: Sequence[int]) -> DataFrame:
    rows = [(5, slot_no, DIGEST, JUDGED) for slot_no in slots]
    return session.createDataFrame(rows, COLUMNS)
