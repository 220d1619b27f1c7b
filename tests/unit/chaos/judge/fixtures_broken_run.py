"""A run with one fault, and what a verdict finds violated."""

from __future__ import annotations

from chaos.judge.verdict import Verdict
from tests.unit.chaos.judge.fixtures_clean_run import UNIX
from tests.unit.chaos.judge.fixtures_run_folder import RunFolder


def violated(verdict: Verdict) -> set[str]:
    """Return the invariants that a verdict finds violated."""
    return {each for each, found in verdict.invariants.items() if found["violations"]}


AGED: dict[str, float | str] = {"parked_at": UNIX + 100.0, "parked_reason": "max_age"}


def park(run: RunFolder, **why: float | str) -> None:
    """A half is parked before its check decides it."""
    run.tables["parked"].append({**run.row("halves", 8), **why})
