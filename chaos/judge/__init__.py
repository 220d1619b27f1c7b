"""Judges a run by its recorded files: no server, no clock, always the same verdict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from chaos.judge.checks import judge_checks
from chaos.judge.consumer_reads import judge_consumer_reads
from chaos.judge.coverage import coverage_of
from chaos.judge.decisions import judge_decisions
from chaos.judge.endings import judge_ending
from chaos.judge.final_state import FinalState, read_final_state
from chaos.judge.findings import Findings
from chaos.judge.manifests import judge_manifests
from chaos.judge.order import judge_order
from chaos.judge.publication import judge_publication
from chaos.judge.recorded_calls import RecordedCalls, read_calls
from chaos.judge.retirement import judge_retirement
from chaos.judge.verdict import Verdict, verdict_of, void

__all__ = ["FACTS", "judge"]

FACTS: Final = "run.json"
"""The file of a run's folder that says what was run, and whether it finished."""


def judge(run: Path) -> Verdict:
    """Return the verdict on a run's folder; a run that did not finish is VOID."""
    try:
        facts = json.loads((run / FACTS).read_text())
    except FileNotFoundError:
        return void({}, f"there is no {FACTS}")
    if "ended" not in facts:
        return void(facts, "the run did not finish")
    try:
        left = read_final_state(run)
    except FileNotFoundError as error:
        return void(facts, f"leftovers are missing: {error.filename}")
    calls = read_calls(run)
    return verdict_of(run, facts, findings_of(facts, left, calls), calls, coverage_of(left, calls))


def findings_of(facts: dict[str, Any], left: FinalState, calls: RecordedCalls) -> Findings:
    """Check every invariant."""
    findings = Findings()
    judge_decisions(left, calls, findings)
    judge_publication(left, calls, findings)
    judge_order(left, calls, findings)
    judge_manifests(left, findings)
    judge_retirement(left, calls, findings)
    judge_checks(left, calls, findings, facts)
    judge_consumer_reads(left, calls, findings)
    judge_ending(left, facts["ended"], findings)
    return findings
