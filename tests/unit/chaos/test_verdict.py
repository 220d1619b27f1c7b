"""PASS only if all was checked, each planned fault met something, and the audit agrees."""

from __future__ import annotations

from collections import Counter
from typing import Any

from chaos.judge import findings_of
from chaos.judge.verdict import PASS, VIOLATION, VOID, Verdict, verdict_of
from tests.unit.chaos.fixtures_clean_run import Run, clean_run


def verdict(run: Run, **ended: Any) -> Verdict:
    """Judge a run in which one kill was planned and performed."""
    run.calls.faults = Counter(kill=1)
    run.calls.ends = run.calls.ends or Counter({("checker", "kill"): 1, ("api", "stopped"): 2})
    run.ended.update({"errors": [], "seconds": 30, **ended})
    facts = {"planned": ["kill"], "profile": "kill", "seed": 1, "ended": run.ended}
    return verdict_of(facts, findings_of(run.left, run.calls, run.ended), run.left, run.calls)


def audit(verdict: str, *causes: str) -> dict[str, Any]:
    """Return what an audit found."""
    return {"verdict": verdict, "sentence": "", "causes": dict.fromkeys(causes, 1)}


def test_a_clean_run_passes() -> None:
    found = verdict(clean_run(), spark=audit("clean"))
    assert (found.verdict, found.reasons, found.kills) == (PASS, [], 1)
    assert found.text().startswith("PASS  kill seed 1: 1 kills, 4 messages")


def test_a_program_that_ended_unasked_voids_a_run() -> None:
    run = clean_run()
    run.calls.ends = Counter({("checker", "ended with 1"): 1})
    assert verdict(run).reasons == ["checker ended with 1 1 times unasked"]


def test_a_planned_fault_that_met_nothing_voids_a_run() -> None:
    run = clean_run()
    found = verdict(run)
    run.calls.faults.clear()
    facts = {"planned": ["kill"], "ended": run.ended}
    again = verdict_of(facts, findings_of(run.left, run.calls, run.ended), run.left, run.calls)
    assert (found.verdict, again.verdict) == (PASS, VOID)


def test_an_audit_that_finds_what_is_not_there_is_a_violation() -> None:
    assert verdict(clean_run(), spark=audit("findings", "LOST/published")).verdict == VIOLATION
    assert verdict(clean_run(), spark=audit("clean")).verdict == PASS


def test_an_audit_must_name_orphans() -> None:
    run = clean_run()
    for table in (run.left.halves, run.left.ops, run.left.committed):
        del table["two"]
    run.left.lost.halves.add("two")
    run.left.already["two"] = {"id": "two"}
    assert verdict(run, spark=audit("findings", "ORPHAN/forgotten")).verdict == PASS
    assert verdict(run, spark=audit("clean")).verdict == VIOLATION
