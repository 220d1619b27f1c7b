"""Prints a counter-example step by step."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from tests.model.scene import cursor_text
from tests.model.search.search import Violation
from tests.model.worlds.universe import CLIENTS, Universe
from tests.model.worlds.world import World

_NAMES = "AB"


def narrate(universe: Universe, violation: Violation) -> str:
    """Return the steps to a violation, the broken invariant, and both stores at the end."""
    lines = [
        *_steps(universe, violation.path),
        f"=> {violation.broken.name}: {violation.broken.text}",
    ]
    return "\n".join([*lines, *_stores(universe, violation.path[-1])])


def _steps(universe: Universe, path: tuple[World, ...]) -> Iterator[str]:
    """Yield one line per step; relays keep their names although the search sorts them."""
    names = _NAMES
    for number, (world, following) in enumerate(pairwise(path), 1):
        step = next(t for t in universe.following(world).steps if t.world == following)
        who = "clients" if step.who == CLIENTS else f"relay {names[step.who]}"
        yield f"{number:3} {who:8} {step.text}"
        if step.swapped:
            names = names[::-1]


def _stores(universe: Universe, world: World) -> Iterator[str]:
    database = universe.databases.values[world.database]
    broker = universe.brokers.values[world.broker]
    yield f"   commit log {list(database.commit_log)}, open {[tuple(f) for f in database.open]}"
    row = database.row.cursor if database.row else None
    yield f"   row: {cursor_text(row) if row else None}"
    yield f"   known as published {sorted(database.already_published)}"
    yield f"   records {[tuple(record) for record in broker.data]}"
    yield f"   owners {world.owners}, ids {broker.ids}"
