"""Each lane of a fold sees what the two others do not: on ranks searched for just that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from xxhash import xxh64_intdigest

from spark import fold, ranks, reconcile
from tests.spark.marks import ON_SPARK

pytestmark = ON_SPARK

DIGEST: Final = 7
SEED: Final = 42
SEARCHED: Final = 300_000
"""Enough ranks for two whose upper halves are equal, and for two whose upper halves cancel."""
ONE_BUCKET: Final = 40
COLUMNS: Final = "shard int, rank bigint, digest bigint, standing string"


def mixed(rank: int) -> int:
    """Return what Spark's xxhash64 makes of the digest and a rank, unsigned."""
    digest = SEED
    for number in (DIGEST, rank):
        digest = xxh64_intdigest(number.to_bytes(8, "little"), digest)
    return digest


def upper(rank: int) -> int:
    """Return the part that is summed: the upper half of the hash, signed."""
    half = mixed(rank) >> 32
    return half - (1 << 32) if half >> 31 else half


def pairs_of_opposites() -> tuple[list[int], list[int]]:
    """Return nothing, and records of two ranks, each twice: neither bits nor sum show them."""
    known: dict[int, int] = {}
    for rank in range(SEARCHED):
        if (other := known.get(-upper(rank))) is not None:
            return [], [rank, rank, other, other]
        known[upper(rank)] = rank
    raise AssertionError("search more ranks")


def one_for_another() -> tuple[list[int], list[int]]:
    """Return a commit and a record of another rank: neither count nor sum show it."""
    known: dict[int, int] = {}
    for rank in range(SEARCHED):
        if (other := known.get(upper(rank))) is not None:
            return [rank], [other]
        known[upper(rank)] = rank
    raise AssertionError("search more ranks")


def half_for_half() -> tuple[list[int], list[int]]:
    """Return as many commits as records of other ranks: neither count nor bits show them.

    Of 66 hashes with a bit for the number of them, some combine to nothing, an even number.
    """
    basis: list[tuple[int, frozenset[int]]] = []
    for rank in range(1, 67):
        bits, of = mixed(rank) << 1 | 1, frozenset({rank})
        for known, parts in basis:
            if bits ^ known < bits:
                bits, of = bits ^ known, of ^ parts
        if bits == 0:
            ranks = sorted(of)
            return ranks[::2], ranks[1::2]
        basis = sorted([*basis, (bits, of)], key=lambda each: -each[0])
    raise AssertionError("66 vectors of 65 bits are not independent")


def dirty(commits: DataFrame, records: DataFrame) -> bool:
    """Tell whether both sides differ; all ranks share a bucket."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(fold, "BUCKET_BITS", ONE_BUCKET)
        (row,) = fold.compared(commits, records).collect()
    return bool(row["dirty"])


@pytest.mark.parametrize("apart", [pairs_of_opposites, one_for_another, half_for_half])
def test_each_lane_sees_what_the_two_others_do_not(session: SparkSession, apart: Any) -> None:
    commits, records = apart()
    assert commits != records
    lanes = (len, _xor, _sum)
    assert [lane(commits) == lane(records) for lane in lanes].count(False) == 1
    others = list(range(1_000_000, 1_000_050))
    sides = [_frame(session, side + others) for side in (commits, records)]
    assert dirty(*sides)


def test_a_bucket_of_equal_sides_is_clean_in_any_order(session: SparkSession) -> None:
    ranks = list(range(50))
    sides = [_frame(session, side) for side in (ranks, ranks[::-1])]
    assert not dirty(*sides)


def test_what_cancels_in_one_lane_shows_in_another(session: SparkSession) -> None:
    """A loss beside a duplicate keeps the count; three copies of one keep the combined bits."""
    a, b, c = (5, 1, 10, "judged"), (5, 2, 20, "judged"), (5, 3, 30, "judged")
    swapped = [(5, 1, 20, "judged"), (5, 2, 10, "judged"), c]
    altered = [(5, 1, 11, "judged"), (5, 2, 21, "judged"), c]
    commits, shuffled = (session.createDataFrame(each, COLUMNS) for each in ([a, b, c], [c, a, b]))
    assert not dirty(commits, shuffled)
    for records in ([a, a, c], [a, a, a, b, c], [a, b], swapped, altered, [a, b, c, c]):
        assert dirty(commits, session.createDataFrame(records, COLUMNS))


def test_a_row_without_a_rank_always_differs(session: SparkSession) -> None:
    """Else a record that names no place would be in no bucket, and in no comparison."""
    stray = [(None, None, DIGEST, reconcile.JUDGED)]
    sides = [session.createDataFrame(stray, COLUMNS) for _ in range(2)]
    assert [row["dirty"] for row in fold.compared(*sides).collect()] == [True, True]


def test_a_place_beyond_its_batch_is_none(session: SparkSession) -> None:
    """Nor is one in a batch that is not read, or of another shard."""
    batches = session.createDataFrame(
        [(5, 2, 100, 103, True, True), (5, 3, 103, 103, False, True), (6, 2, 0, 3, True, True)],
        "shard int, batch_no bigint, from_rank bigint, to_rank bigint, "
        "in_turn boolean, whole boolean",
    )
    named = [(5, 2, 0), (5, 2, 2), (5, 2, 3), (5, 2, -1), (5, 3, 0), (5, 9, 0), (6, 2, 0)]
    records = session.createDataFrame(
        [(7 << 15 | 5, *place) for place in named],
        "half_id bigint, shard int, batch_no bigint, index int",
    )
    rows = ranks.with_ranks(records, batches).collect()
    found = {(row["shard"], row["batch_no"], row["index"]): row["rank"] for row in rows}
    assert found == dict.fromkeys(named) | {(5, 2, 0): 101, (5, 2, 2): 103}


def test_two_manifests_of_one_number_tell_no_rank_and_double_no_record(
    session: SparkSession,
) -> None:
    listed = session.createDataFrame(
        [(5, 1, 2, 0, 0, 7, 2, 1), (5, 2, 1, 7, 2, 8, 1, 1), (5, 2, 1, 7, 2, 8, 1, 1)],
        "shard int, batch_no bigint, entries int, from_xid bigint, from_n bigint, to_xid bigint, "
        "to_n bigint, kind int",
    ).withColumn("intact", F.lit(True))
    flushes = session.createDataFrame(
        [(5, 7, 2, 0), (5, 8, 1, 2)], "shard int, xid bigint, size bigint, before bigint"
    )
    records = session.createDataFrame(
        [(7 << 15 | 5, 5, 1, 1), (8 << 15 | 5, 5, 2, 0)],
        "half_id bigint, shard int, batch_no bigint, index int",
    )
    rows = ranks.with_ranks(records, ranks.batches(listed, flushes)).collect()
    assert sorted((row["batch_no"], row["rank"]) for row in rows) == [(1, 2), (2, None)]


def _frame(session: SparkSession, ranks: Sequence[int]) -> DataFrame:
    rows = [(5, rank, DIGEST, reconcile.JUDGED) for rank in ranks]
    return session.createDataFrame(rows, COLUMNS)


def _sum(ranks: Sequence[int]) -> int:
    return sum(map(upper, ranks))


def _xor(ranks: Sequence[int]) -> int:
    combined = 0
    for rank in ranks:
        combined ^= mixed(rank)
    return combined
