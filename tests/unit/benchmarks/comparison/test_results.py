"""Measurements are summed up by medians, and two trees by the ratios of their rounds."""

from __future__ import annotations

import pytest

from benchmarks.comparison.results import OURS, RELEASE, cost_ratio, medians, rounded
from tests.unit.benchmarks.comparison.fixtures_documents import path_row

PATH = "batch 500 x 4"


def test_a_median_is_that_of_each_figure_also_of_each_process() -> None:
    rows = [path_row(OURS, PATH, cost, 1000.0 - cost, n) for n, cost in enumerate((50, 90, 60))]
    found = medians(rows)[OURS][PATH]
    assert (found["cpu_us"]["api"], found["through_per_second"], found["rounds"]) == (12, 940, 3)


def test_a_ratio_is_the_median_of_the_rounds_in_which_both_were_measured() -> None:
    costs = [(50.0, 100.0), (90.0, 100.0), (80.0, 100.0)]
    rows = [
        path_row(subject, PATH, cost, 1.0, number)
        for number, pair in enumerate(costs)
        for subject, cost in zip((OURS, RELEASE), pair, strict=True)
    ]
    alone = path_row(OURS, PATH, 10_000.0, 1.0, 3)
    assert cost_ratio([*rows, alone], PATH, OURS, RELEASE) == pytest.approx(0.8)


def test_there_is_no_ratio_without_the_other() -> None:
    assert cost_ratio([path_row(OURS, PATH, 50.0, 1.0)], PATH, OURS, RELEASE) is None


def test_figures_are_kept_with_four_digits() -> None:
    assert rounded({"a": [123456.7, 3], "b": "x"}) == {"a": [123500.0, 3], "b": "x"}
