"""The relay's protocol in every world of the model, and mutants of it in worlds that catch them.

Each search is one process's work of a second; its counter-example is printed step by step.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Final

import pytest

from tests.model.configurations import LARGER, SEARCHED, Configuration
from tests.model.mutants import MUTANTS, WORLDS, Mutant
from tests.model.scene import (
    FAST_THEN_HISTORY,
    K_ENTRY,
    LEFT,
    LONG_REPLAY,
    ORPHAN,
    RELEASE,
    REPLAYED_RELEASE,
    S_ENTRY,
    STALE_FRAME,
    UNSENT,
)
from tests.model.search.counterexample import narrate
from tests.model.search.search import Search
from tests.model.worlds.universe import Universe

SMALL: Final = (*SEARCHED, *WORLDS)
"""The relay's protocol must hold in the mutants' own worlds too."""


@pytest.fixture(scope="module", autouse=True)
def no_collector() -> Iterator[None]:
    """A search makes millions of tuples and no cycle: the collector would walk them in vain."""
    gc.disable()
    yield
    gc.enable()


def search(world: Configuration) -> frozenset[str]:
    """Search a world under the relay's own protocol; return the named states that it reached."""
    universe = Universe(world)
    result = Search(universe).run()
    assert result.violation is None, narrate(universe, result.violation)
    assert result.quiet > 0
    return result.reached


def test_every_invariant_holds_in_every_world() -> None:
    """A search that never reached one of the named states proves nothing about it."""
    reached = frozenset[str]().union(*map(search, SMALL))
    assert reached >= {
        FAST_THEN_HISTORY,
        K_ENTRY,
        LEFT,
        LONG_REPLAY,
        ORPHAN,
        RELEASE,
        REPLAYED_RELEASE,
        S_ENTRY,
        STALE_FRAME,
        UNSENT,
    }


@pytest.mark.deep
@pytest.mark.parametrize("world", LARGER, ids=[world.name for world in LARGER])
def test_every_invariant_holds_in_every_larger_world(world: Configuration) -> None:
    search(world)


@pytest.mark.deep
@pytest.mark.parametrize("mutant", MUTANTS, ids=[each.name for each in MUTANTS])
def test_every_mutant_breaks_the_invariant_it_must(mutant: Mutant) -> None:
    universe = Universe(mutant.configuration, mutant.step, mutant.rules)
    violation = Search(universe, (mutant.breaks,)).run().violation
    assert violation is not None, "a protocol that is wrong was not found out"
    assert violation.broken.name == mutant.breaks
