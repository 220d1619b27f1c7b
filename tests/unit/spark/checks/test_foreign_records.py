"""Records of other writers, added up over runs."""

from __future__ import annotations

from spark.checks import foreign_records
from spark.findings.finding_class import FindingClass


def test_what_two_runs_have_counted_is_added_up_by_partition() -> None:
    earlier = {
        "9": {"records": 2, "first": 5, "last": 8},
        "1": {"records": 1, "first": 3, "last": 3},
    }
    now = {"10": {"records": 4, "first": 0, "last": 9}, "9": {"records": 3, "first": 9, "last": 11}}
    added = foreign_records.add_counts(earlier, now)
    assert list(added) == ["1", "9", "10"]
    assert added == {**earlier, **now, "9": {"records": 5, "first": 5, "last": 11}}


def test_a_topic_has_one_finding_whose_place_is_the_first_record() -> None:
    found = foreign_records.topic_finding(
        FindingClass.FOREIGN,
        "points",
        {"1": {"records": 2, "first": 3, "last": 9}, "2": {"records": 1, "first": 0, "last": 0}},
    )
    assert (found.finding_class, found.topic) == (FindingClass.FOREIGN, "points")
    assert (found.partition, found.offset, found.detail["records"]) == (1, 3, 3)
