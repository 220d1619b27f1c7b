"""``python -m tests.model``: search, walk, mutate, and print the table.

``--deep`` adds the configurations that take minutes, ``--mutants`` the counter-examples.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser

from tests.model.configurations import DEEP, LARGER, SEARCHED
from tests.model.mutants import MUTANTS, WORLDS
from tests.model.report import SEED, counterexamples, run, table

WALKS = 300


def main() -> int:
    """Return 0 if the protocol holds and every mutant fails, 1 otherwise."""
    parser = ArgumentParser(prog="python -m tests.model", description=__doc__)
    parser.add_argument("--deep", action="store_true", help="search the large configurations too")
    parser.add_argument("--mutants", action="store_true", help="print how each mutant fails")
    parser.add_argument("--walks", type=int, default=WALKS, help="how many random walks")
    parser.add_argument("--seed", type=int, default=SEED, help="of the random walks")
    asked = parser.parse_args()
    report = run(
        (*SEARCHED, *WORLDS, *LARGER, *(DEEP if asked.deep else ())),
        MUTANTS,
        asked.walks,
        asked.seed,
    )
    _print(*table(report))
    if asked.mutants:
        _print(*(f"\n{one.name}\n{one.counterexample}" for one in report.mutants))
    wrong = list(counterexamples(report))
    _print(*wrong)
    return 1 if wrong or not all(one.counterexample for one in report.mutants) else 0


def _print(*lines: str) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
