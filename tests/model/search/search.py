"""Breadth-first search over all worlds of a configuration; checks every invariant in each."""

from __future__ import annotations

from array import array
from collections.abc import Collection
from dataclasses import dataclass

from tests.model.worlds.invariants import Wrong, wrong
from tests.model.worlds.universe import Universe
from tests.model.worlds.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """The shortest path to a world that breaks an invariant."""

    broken: Wrong
    path: tuple[World, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of a search."""

    quiet: int
    """Worlds in which faults have stopped and nothing is left to do."""
    reached: frozenset[str]
    violation: Violation | None


class Judge:
    """Checks the invariants in worlds; worlds with equal stores are judged once."""

    def __init__(self, universe: Universe, only: Collection[str] = ()) -> None:
        self._universe = universe
        self._only = only
        self._judged: dict[tuple[int, int, int, bool], Wrong | None] = {}

    def wrong(self, world: World, *, quiet: bool) -> Wrong | None:
        """Return what is wrong with a world, or None."""
        key = (world.database, world.broker, world.lost, quiet)
        try:
            return self._judged[key]
        except KeyError:
            database = self._universe.databases.values[world.database]
            broker = self._universe.brokers.values[world.broker]
            lost = frozenset(i for i in range(database.halves) if world.lost >> i & 1)
            verdict = wrong(database, broker, lost, quiet=quiet, only=self._only)
            self._judged[key] = verdict
            return verdict


class Search:
    """One breadth-first search; ``only`` names the invariants to check, all if it is empty."""

    def __init__(self, universe: Universe, only: Collection[str] = ()) -> None:
        self._universe = universe
        self._judge = Judge(universe, only)
        start = universe.start()
        self._numbers: dict[World, int] = {start: 0}
        self._worlds: list[World] = [start]
        self._parents = array("l", [0])
        self._calm = array("l")
        """The number of the world that follows when faults have stopped."""

    def run(self) -> Result:
        """Search until every world was visited or one is wrong."""
        number = 0
        while number < len(self._worlds):
            broken = self._visit(number)
            if broken is not None:
                return self._result(Violation(broken=broken, path=self._path(number)))
            number += 1
        return self._result(self._never_quiet())

    def _visit(self, number: int) -> Wrong | None:
        """Find the worlds that follow one, and judge it."""
        world = self._worlds[number]
        steps, calm = self._universe.following(world)
        broken = self._judge.wrong(world, quiet=calm == world)
        if broken is not None:
            return broken
        numbers, worlds, parents = self._numbers, self._worlds, self._parents
        for _, _, following, _ in steps:
            if following not in numbers:
                numbers[following] = len(worlds)
                worlds.append(following)
                parents.append(number)
        self._calm.append(numbers[calm])
        return None

    def _path(self, number: int) -> tuple[World, ...]:
        path = [self._worlds[number]]
        while number:
            number = self._parents[number]
            path.append(self._worlds[number])
        return tuple(reversed(path))

    def _never_quiet(self) -> Violation | None:
        """Find a world from which the run without faults never ends."""
        settled = bytearray(len(self._worlds))
        for number in range(len(self._worlds)):
            walked: list[int] = []
            while not settled[number]:
                settled[number] = 1
                walked.append(number)
                following = self._calm[number]
                if following == number:
                    break
                if settled[following] == 1:
                    return Violation(
                        broken=Wrong("I17", "the run without faults never ends"),
                        path=self._path(number),
                    )
                number = following
            for passed in walked:
                settled[passed] = 2
        return None

    def _result(self, violation: Violation | None) -> Result:
        return Result(
            quiet=sum(calm == number for number, calm in enumerate(self._calm)),
            reached=frozenset(self._universe.effects.reached),
            violation=violation,
        )
