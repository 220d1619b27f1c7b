"""Judges a run by its recorded files: no server, no clock, always the same verdict."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from chaos.judge.calls import RecordedCalls, read_calls
from chaos.judge.decisions import judge_decisions
from chaos.judge.ending import judge_ending
from chaos.judge.final_state import FinalState, read_final_state
from chaos.judge.findings import Findings
from chaos.judge.order import judge_order
from chaos.judge.publication import judge_publication
from chaos.judge.verdict import Verdict, verdict_of, void

__all__ = ["FACTS", "findings_of", "judge"]

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
    left, calls = read_final_state(run), read_calls(run)
    return verdict_of(facts, findings_of(left, calls, facts["ended"]), left, calls)


def findings_of(left: FinalState, calls: RecordedCalls, ended: Mapping[str, Any]) -> Findings:
    """Check every invariant; ``ended`` is how the run ended."""
    findings = Findings()
    judge_publication(left, calls, findings)
    judge_decisions(left, calls, findings)
    judge_order(left, calls, findings)
    judge_ending(left, ended, findings)
    return findings
