"""The end of a run: no open transaction in Kafka, no backlog, nothing that is held or halted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chaos.judge.final_state import FinalState
from chaos.judge.findings import Findings


def judge_ending(left: FinalState, ended: Mapping[str, Any], findings: Findings) -> None:
    """I16, I17."""
    for place, ends in left.watermarks.items():
        holds = ends["stable"] == ends["end"]
        findings.check("I16", holds, "a transaction is still open", place=place, **ends)
    for state, count in ended["left"].items():
        findings.check("I17", count == 0, f"{count} messages still {state}")
    for message_id in left.halves.keys() - left.ops.keys() - left.parked:
        findings.check("I17", False, "still undecided, and not parked", id=message_id)
    for relay, reason in left.halts.items():
        findings.check("I17", False, f"{relay} has halted: {reason}")
