"""Runs searches, mutants and walks, two at a time, and prints the results."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from time import process_time
from typing import Final

from tests.model.configurations import WALKED, Configuration
from tests.model.mutants import Mutant
from tests.model.search.counterexample import narrate
from tests.model.search.search import Result, Search
from tests.model.search.walks import Walked, walk
from tests.model.worlds.universe import Universe

SEED: Final = 20_250_101
WORKERS: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """A configuration, the result of its search, and the counter-example as text."""

    name: str
    result: Result
    counterexample: str | None
    seconds: float
    """Of processor time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkedOver:
    """The walked configuration, the result of the walks, and the counter-example as text."""

    name: str
    result: Walked
    counterexample: str | None
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The results of all runs."""

    searched: Sequence[Searched]
    mutants: Sequence[Searched]
    walked: WalkedOver


def run(
    configurations: Sequence[Configuration], mutants: Sequence[Mutant], walks: int, seed: int = SEED
) -> Report:
    """Run everything in separate processes, so that two processors share the work.

    They make millions of tuples and no cycle: the garbage collector would walk over them in vain.
    """
    with ProcessPoolExecutor(WORKERS, get_context("spawn"), initializer=gc.disable) as pool:
        searched = [pool.submit(search, configuration) for configuration in configurations]
        walked = pool.submit(walk_over, walks, seed)
        wrong = [pool.submit(search_mutant, mutant) for mutant in mutants]
        return Report(searched=_all(searched), mutants=_all(wrong), walked=walked.result())


def _all(futures: Sequence[Future[Searched]]) -> list[Searched]:
    return [future.result() for future in futures]


def search(configuration: Configuration) -> Searched:
    """Search a configuration under the relay's own protocol."""
    return _searched(configuration.name, Universe(configuration), ())


def search_mutant(mutant: Mutant) -> Searched:
    """Search a mutant's world for the invariant that it must break."""
    universe = Universe(mutant.configuration, mutant.step, mutant.rules)
    return _searched(mutant.name, universe, (mutant.breaks,))


def _searched(name: str, universe: Universe, only: tuple[str, ...]) -> Searched:
    began = process_time()
    result = Search(universe, only).run()
    text = narrate(universe, result.violation) if result.violation else None
    return Searched(name=name, result=result, counterexample=text, seconds=process_time() - began)


def walk_over(walks: int, seed: int) -> WalkedOver:
    """Walk at random through the configuration that is too large to search."""
    began, universe = process_time(), Universe(WALKED)
    result = walk(universe, walks, seed)
    text = narrate(universe, result.violation) if result.violation else None
    return WalkedOver(
        name=WALKED.name, result=result, counterexample=text, seconds=process_time() - began
    )


def table(report: Report) -> Iterator[str]:
    """Yield the report line by line."""
    yield f"{'states':>9} {'transitions':>11} {'depth':>5} {'quiet':>6} {'CPU s':>6}  configuration"
    for one in report.searched:
        found = one.result
        numbers = f"{found.states:9} {found.transitions:11} {found.depth:5} {found.quiet:6}"
        yield f"{numbers} {one.seconds:6.1f}  {one.name}"
    walked = report.walked
    seen = walked.result
    yield (
        f"{seen.walks} random walks, {seen.steps} steps, the longest {seen.longest},"
        f" {walked.seconds:.1f} CPU s: {walked.name}"
    )
    yield f"reached: {', '.join(sorted(reached(report)))}"
    if report.mutants:
        yield f"{'states':>9} {'steps':>5} {'breaks':>6}  mutant"
    for one in report.mutants:
        violation = one.result.violation
        steps = len(violation.path) - 1 if violation else "none"
        breaks = violation.broken.name if violation else "none"
        yield f"{one.result.states:9} {steps:>5} {breaks:>6}  {one.name}"


def reached(report: Report) -> frozenset[str]:
    """Return the named states that the searches reached; walks do not count."""
    return frozenset().union(*(one.result.reached for one in report.searched))


def counterexamples(report: Report) -> Iterator[str]:
    """Yield the counter-examples of the protocol itself; none if it holds."""
    walked = report.walked
    texts = [(one.name, one.counterexample) for one in report.searched] + [
        (walked.name, walked.counterexample)
    ]
    for name, text in texts:
        if text:
            yield f"{name}\n{text}"
