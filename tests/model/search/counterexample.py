"""Prints a counter-example step by step."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from tests.model.search.search import Violation
from tests.model.worlds.universe import CLIENTS, Universe
from tests.model.worlds.world import World

_NAMES = "AB"


def narrate(universe: Universe, violation: Violation) -> str:
    """Return the steps to a violation, and the broken invariant."""
    broken = f"=> {violation.broken.name}: {violation.broken.text}"
    return "\n".join([*_steps(universe, violation.path), broken])


def _steps(universe: Universe, path: tuple[World, ...]) -> Iterator[str]:
    """Yield one line per step; relays keep their names although the search sorts them."""
    names = _NAMES
    for number, (world, following) in enumerate(pairwise(path), 1):
        step = next(t for t in universe.following(world).steps if t.world == following)
        who = "clients" if step.who == CLIENTS else f"relay {names[step.who]}"
        yield f"{number:3} {who:8} {step.text}"
        if step.swapped:
            names = names[::-1]
