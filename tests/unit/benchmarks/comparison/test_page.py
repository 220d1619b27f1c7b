"""The tables of the page come from the document, and say what is missed and by how much."""

from __future__ import annotations

import pytest

from benchmarks.comparison.page import goals, parts_of_before, tables, written
from tests.unit.benchmarks.comparison.fixtures_documents import usual_document

PLACES = "".join(
    f"<!-- bench: {name} -->\nold\n<!-- end of bench -->\n\n" for name in tables(usual_document())
)


def test_each_table_stands_between_its_markers_and_the_rest_stays() -> None:
    page = written(f"# Title\n{PLACES}words\n", usual_document())
    assert page.startswith("# Title\n<!-- bench: conditions -->\n|")
    assert page.endswith("<!-- end of bench -->\n\nwords\n")
    assert "old" not in page


def test_a_page_that_is_written_twice_is_the_same() -> None:
    once = written(PLACES, usual_document())
    assert written(once, usual_document()) == once


def test_a_page_without_a_marker_is_refused() -> None:
    with pytest.raises(ValueError, match="goals"):
        written(PLACES.replace("bench: goals", "bench: aims"), usual_document())


def test_a_goal_that_is_met_and_one_that_is_missed_are_told_apart() -> None:
    met, missed = goals(usual_document()).splitlines()[2:]
    assert met.endswith("| ≤ 55 µs, ≥ 30 000/s, ≥ 2.30 × RocketMQ | "
                        "50 µs, 31 000/s, 3.10 × RocketMQ | yes |")  # fmt: skip
    assert "no: 660 µs is 2.00 × the goal; 3 000/s is 0.50 × the goal" in missed


def test_a_goal_is_also_judged_as_a_part_of_what_the_last_release_needs() -> None:
    (line,) = parts_of_before(usual_document()).splitlines()[2:]  # only that path has both trees
    assert line == "| batch 500 x 4 | CPU time | 0.51 | 0.50 | yes |"


def test_the_costs_of_both_trees_and_their_ratio_stand_below_each_other() -> None:
    lines = tables(usual_document())["costs"].splitlines()
    assert lines[2].startswith("| batch 500 x 4 | this tree | 10 | 10 | 10 | 10 | 10 | 50 | 600 |")
    assert lines[3].startswith("| batch 500 x 4 | last release | 20 |")
    assert "| 0.50 |" in lines[4]
