"""The gate measures on until its verdict is clear, and a tenth more is too much."""

from __future__ import annotations

import pytest

from benchmarks.cost.gate import clear, kept


@pytest.mark.parametrize(
    ("found", "is_clear", "is_kept"),
    [
        ([0.9, 1.0, 1.3], True, True),
        ([1.04, 1.08, 1.2], False, True),
        ([0.9, 1.12, 1.2], False, False),
    ],
)
def test_the_median_of_the_pairs_decides(found: list[float], is_clear: bool, is_kept: bool) -> None:
    assert (clear(found), kept(found)) == (is_clear, is_kept)
