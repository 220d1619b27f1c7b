"""Checks: not early, not late, not too many; only a verdict for the message asked decides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from chaos.judge.calls import Calls
from chaos.judge.findings import Findings
from chaos.judge.leftovers import Leftovers, Op, Row

EARLY_SECONDS: Final = 0.05
ROUND_SECONDS: Final = 4.0
"""A round asks for a second; a call it has begun ends two seconds later; a crash adds to that."""


def judge_checks(
    left: Leftovers, calls: Calls, findings: Findings, policy: Mapping[str, Any], crashes: int
) -> None:
    """I12, I13, I14, G7; ``crashes`` of checkers may each repeat what they had in flight."""
    for message_id, attempts in left.attempts.items():
        half = left.halves.get(message_id)
        if half is not None:
            _times(findings, half, left.op(message_id), attempts, policy)
        spent = Counter(each["round"] for each in attempts if each["counted"])
        most = policy["check_max"] + crashes
        findings.check(
            "I12", max(spent.values(), default=0) <= most, "checked too often", id=message_id
        )
    for message_id, op in left.ops.items():
        if op.decided_by == "check":
            _verdict(left, calls, findings, message_id, op)
    _applied(left, findings)


def _times(
    findings: Findings, half: Row, op: Op | None, attempts: list[Row], policy: Mapping[str, Any]
) -> None:
    immune = half["immunity"] or policy["transaction_timeout_seconds"]
    due = half["prepared_at"] + immune - EARLY_SECONDS
    for attempt in attempts:
        about = {"id": half["id"], "asked_at": attempt["asked_at"]}
        findings.check("I12", attempt["asked_at"] >= due, "asked within its immunity", **about)
        if op is not None:
            late = attempt["asked_at"] - op.decided_at
            findings.check("I12", late <= ROUND_SECONDS, "asked after its decision", **about)


def _verdict(left: Leftovers, calls: Calls, findings: Findings, message_id: str, op: Op) -> None:
    about = {"id": message_id, "op": op}
    words = (op.decision.lower(), True)
    found = [(each["outcome"], each["applied"]) for each in left.attempts.get(message_id, ())]
    findings.check("I13", words in found, "decided by a check without its verdict", **about)
    said = {answered for _, answered in calls.answered.get(message_id, ())}
    findings.check("I14", op.decision in said, "a verdict nobody gave for this message", **about)
    tx = left.halves[message_id]["tx"] if message_id in left.halves else None
    truth = calls.truth.get(str(tx))
    findings.check("G7", truth == op.decision, "against the local transaction", tx=tx, **about)


def _applied(left: Leftovers, findings: Findings) -> None:
    """I13, the other way round: an attempt that says it decided has its op."""
    for message_id, attempts in left.attempts.items():
        for attempt in attempts:
            if attempt["applied"] and message_id not in left.lost:
                op = left.op(message_id)
                holds = op is not None and op.decision.lower() == attempt["outcome"]
                findings.check("I13", holds, "an attempt that decided nothing", id=message_id)
