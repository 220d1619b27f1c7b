"""The relay's protocol in every world of the model, and mutants of it in worlds that catch them."""

from __future__ import annotations

import pytest

from tests.model.configurations import LARGER, Configuration
from tests.model.conftest import ALL
from tests.model.mutants import MUTANTS, Mutant
from tests.model.report import Report, reached, search, search_mutant
from tests.model.scene import (
    FAST_THEN_HISTORY,
    K_ENTRY,
    LONG_REPLAY,
    ORPHAN,
    RELEASE,
    REPLAYED_RELEASE,
    S_ENTRY,
    STALE_FRAME,
    UNSENT,
)


@pytest.mark.parametrize("place", range(len(ALL)), ids=[world.name for world in ALL])
def test_every_invariant_holds_in_every_world(report: Report, place: int) -> None:
    searched = report.searched[place]
    assert searched.counterexample is None, searched.counterexample
    assert searched.result.quiet > 0


@pytest.mark.deep
@pytest.mark.parametrize("world", LARGER, ids=[world.name for world in LARGER])
def test_every_invariant_holds_in_every_larger_world(world: Configuration) -> None:
    searched = search(world)
    assert searched.counterexample is None, searched.counterexample
    assert searched.result.quiet > 0


def test_every_invariant_holds_on_random_walks_through_a_larger_world(report: Report) -> None:
    assert report.walked.counterexample is None, report.walked.counterexample


def test_the_searches_reached_what_they_must_not_miss(report: Report) -> None:
    """A search that never reached one of these proves nothing about it."""
    assert reached(report) >= {
        FAST_THEN_HISTORY,
        K_ENTRY,
        LONG_REPLAY,
        ORPHAN,
        RELEASE,
        REPLAYED_RELEASE,
        S_ENTRY,
        STALE_FRAME,
        UNSENT,
    }


@pytest.mark.deep
@pytest.mark.parametrize("mutant", MUTANTS, ids=[each.name for each in MUTANTS])
def test_every_mutant_breaks_the_invariant_it_must(mutant: Mutant) -> None:
    violation = search_mutant(mutant).result.violation
    assert violation is not None, "a protocol that is wrong was not found out"
    assert violation.broken.name == mutant.breaks
