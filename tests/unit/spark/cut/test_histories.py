"""What counting finds open in a history: nothing where nobody made a mistake, at whatever cut."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given

from spark.findings.finding_class import FindingClass
from tests.spark.cut.fixtures_histories import (
    Cut,
    History,
    any_histories,
    clean_histories,
    drawn,
    open_at,
)

CUTS = 3


@given(clean_histories(CUTS))
def test_nothing_is_open_at_any_cut_of_a_history_without_faults(history: History) -> None:
    assert [open_at(history, cut) for cut in history.cuts] == [frozenset()] * len(history.cuts)


@pytest.mark.parametrize(
    ("reordered", "shown"),
    [
        (lambda cut: Cut(cut.decided, cut.decided, cut.manifests), FindingClass.UNDECIDED),
        (lambda cut: Cut(cut.decided, cut.manifests, cut.decided), FindingClass.LOST),
    ],
    ids=["snapshot before log", "records before manifests"],
)
def test_a_cut_in_another_order_shows_what_is_not_there(
    reordered: Callable[[Cut], Cut], shown: FindingClass
) -> None:
    found = Counter(
        finding_class
        for history in drawn(100, clean_histories(CUTS))
        for cut in history.cuts
        for _, finding_class in open_at(history, reordered(cut))
    )
    assert found[shown]


def test_the_histories_that_are_drawn_have_every_fault() -> None:
    found = {
        finding_class
        for history in drawn(250, any_histories(CUTS))
        for cut in history.cuts
        for _, finding_class in open_at(history, cut)
    }
    assert found == {
        FindingClass.LOST,
        FindingClass.SKIPPED,
        FindingClass.HELD,
        FindingClass.GIVEN_UP,
        FindingClass.DUPLICATE,
        FindingClass.REDRIVEN,
        FindingClass.ROLLED_BACK,
        FindingClass.UNDECIDED,
        FindingClass.UNKNOWN_ID,
        FindingClass.CORRUPT_VALUE,
    }
