"""Does a message cost more CPU time than in the previous release?

This tree and the release run side by side and are measured in turn, A B B A, one of them paused.
The figure is the CPU time of all servers for a message, on the two main paths; it is the median of
the pairs' ratios. Near the limit or above it, more pairs are measured. Exit code 1: a path is more
than a tenth dearer. It has to run alone, for about a minute: beside other work even equal programs
differ. `make test-deep` ends with it.

``--planted`` tests the gate itself: instead of this tree it judges a second checkout of the
release, in which each message costs so many CPU microseconds more. With 0 both are the same.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from benchmarks.comparison.command import awake_at_the_end
from benchmarks.comparison.installation import Installation
from benchmarks.measure.machine import facts, report
from benchmarks.measure.pause import end_in_order
from benchmarks.measure.planted_cost import plant
from benchmarks.measure.previous_release import checkout, previous_release

LIMIT: Final = 1.1
CLEAR: Final = 1.05
"""Up to this ratio the first pairs are enough."""
PATHS: Final = {"batch 500 x 4": 15_000, "single x 64": 1_500}
PAIRS: Final = 5
MOST_PAIRS: Final = 11


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 1 if a path has become too dear."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cost.gate", description=__doc__)
    parser.add_argument("--release", help="the commit to compare with; default: the last tag")
    parser.add_argument("--tree", type=Path, help="the checkout to judge; default: this one")
    parser.add_argument("--planted", type=float, metavar="MICROSECONDS")
    asked = parser.parse_args(arguments)
    end_in_order()
    release = asked.release or previous_release()
    if release is None:
        print("not measured: this clone lacks the previous release (git fetch --unshallow --tags)")
        return 0
    with ExitStack() as stack:
        before = stack.enter_context(checkout(release))
        if asked.planted is not None:
            asked.tree = stack.enter_context(checkout(release))
            plant(asked.tree, asked.planted)
        trees = {"now": asked.tree, "before": before}
        now, then = (
            Installation(name, stack.enter_context(awake_at_the_end(tree)), with_clients=False)
            for name, tree in trees.items()
        )
        report("gate", release=release, planted_us=asked.planted, limit=LIMIT, **facts())
        found = {path: ratios(now, then, path, messages) for path, messages in PATHS.items()}
    return 0 if all(kept(each) for each in found.values()) else 1


def ratios(now: Installation, then: Installation, path: str, messages: int) -> list[float]:
    """Measure pairs until the verdict is clear; print and return their ratios."""
    for each in (now, then):
        each.cost(path, messages // 2)  # warms up
        each.sleep_programs()
    found: list[float] = []
    while len(found) < PAIRS or (not clear(found) and len(found) < MOST_PAIRS):
        order = (now, then) if len(found) % 2 else (then, now)
        costs = {}
        for each in order:
            each.awaken_programs()
            costs[each.name] = each.cost(path, messages)
            each.sleep_programs()
        found.append(costs["now"] / costs["before"])
        report(path, ratio=round(found[-1], 3), **{f"{k}_us": round(v) for k, v in costs.items()})
    for each in (now, then):
        each.awaken_programs()
    verdict = {"pairs": len(found), "limit": LIMIT, "kept": kept(found)}
    report(f"{path}: now / before", ratio=round(statistics.median(found), 3), **verdict)
    return found


def kept(found: Sequence[float]) -> bool:
    """Return whether the median of the ratios is within the limit."""
    return statistics.median(found) <= LIMIT


def clear(found: Sequence[float]) -> bool:
    """Return whether no further pair is needed."""
    return statistics.median(found) <= CLEAR


if __name__ == "__main__":
    raise SystemExit(main())
