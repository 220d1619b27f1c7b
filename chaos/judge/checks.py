"""Checks: not early, not late, not too many; only a verdict for the checked message decides."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from chaos.judge.final_state import FinalState, Op, Row
from chaos.judge.findings import Findings
from chaos.judge.recorded_calls import RecordedCalls
from outbox.messages.message import ParkedReason

Span = tuple[float, float]
EARLY_SECONDS: Final = 0.05
ROUND_SECONDS: Final = 4.0
"""A round sends calls for a second, a call lasts up to two seconds more, and a crash adds time."""
CALL_SECONDS: Final = 2.0
"""A call whose checker has died is still answered, for so long: to nobody."""
ANSWER_SECONDS: Final = 10.0
"""The longest time from an answer of the endpoint to the commit of its attempt, without stalls."""


def judge_checks(
    left: FinalState,
    calls: RecordedCalls,
    findings: Findings,
    facts: Mapping[str, Any],
) -> None:
    """I12, I13, I14, G7; ``facts`` are those of ``run.json``."""
    policy, began = facts["policy"], facts["started"]["unix"] - facts["started"]["mono"]
    stalls = merged((start + began, end + began) for start, end in calls.stalls)
    for message_id, attempts in left.attempts.items():
        half = left.halves.get(message_id)
        if half is not None:
            _early(findings, half, attempts, policy)
        op = left.op(message_id)
        if op is not None:
            _late(findings, message_id, op, attempts, stalls)
        spent = Counter(each["round"] for each in attempts if each["counted"])
        most = check_max(policy, half)
        holds = max(spent.values(), default=0) <= most
        findings.check("I12", holds, "checked too often", id=message_id, most=most)
    _parked(left, findings, policy)
    _noted(left, calls, findings)
    for message_id, op in left.ops.items():
        if op.decided_by == "check":
            _verdict(left, calls, findings, message_id, op)
    _applied(left, findings)


def check_max(policy: Mapping[str, Any], half: Row | None) -> int:
    """Return how many checks of a half may be spent; a group may have a limit of its own."""
    group = half["producer_group"] if half else ""
    return int(policy.get("check_max_of", {}).get(group, policy["check_max"]))


def _parked(left: FinalState, findings: Findings, policy: Mapping[str, Any]) -> None:
    """I12: a half is parked at its largest age, or after its group's limit of spent checks.

    The attempts of a parked half may have gone with its leaf.
    """
    for message_id, half in left.parked.items():
        if left.is_leaf_retired(message_id):
            continue
        if half["parked_reason"] == ParkedReason.MAX_AGE:
            age = half["parked_at"] - half["prepared_at"]
            holds = age >= policy["max_age_seconds"] - EARLY_SECONDS
        else:
            attempts = left.attempts.get(message_id, ())
            spent = Counter(each["round"] for each in attempts if each["counted"])
            holds = max(spent.values(), default=0) >= check_max(policy, half)
        reason = half["parked_reason"]
        findings.check("I12", holds, "parked too early", id=message_id, reason=reason)


def _noted(left: FinalState, calls: RecordedCalls, findings: Findings) -> None:
    """I12: an answer has its attempt row, unless a crash could have lost it.

    A crash is that of a checker or of its sessions with PostgreSQL, and may lose one answer about
    a message. Answers without a crash soon after them, or during their call, must all be noted.
    """
    losses, stalls = sorted(calls.losses), merged(calls.stalls)
    starts = [start for start, _ in losses]
    longest = max((end - start for start, end in losses), default=0.0)
    for message_id, answers in calls.answered.items():
        if message_id in left.lost or left.is_retired(message_id):
            continue
        noted = len(left.attempts.get(message_id, ()))
        crashes = []
        for at, _ in answers:
            near = losses[bisect_left(starts, at - CALL_SECONDS - longest) :]
            crashes.append(_crashes(near, stalls, at))
        could_be_lost = set().union(*crashes)
        safe = sum(not each for each in crashes)
        holds = safe <= noted and len(answers) <= noted + len(could_be_lost)
        about = {"id": message_id, "noted": noted, "answered": len(answers), "safe": safe}
        findings.check("I12", holds, "a check without its attempt row", **about)


def _crashes(losses: Iterable[Span], stalls: Sequence[Span], answered_at: float) -> set[Span]:
    """Return the crashes that could have lost an answer."""
    found = set[Span]()
    for start, end in losses:
        waited = start - answered_at
        if waited > ANSWER_SECONDS:
            waited -= _covered(stalls, answered_at, start)
        if waited > ANSWER_SECONDS:
            break
        if end + CALL_SECONDS >= answered_at:
            found.add((start, end))
    return found


def _early(
    findings: Findings, half: Row, attempts: Iterable[Row], policy: Mapping[str, Any]
) -> None:
    immune = half["immunity"] or policy["transaction_timeout_seconds"]
    due = half["prepared_at"] + immune - EARLY_SECONDS
    for attempt in attempts:
        about = {"id": half["id"], "asked_at": attempt["asked_at"]}
        findings.check("I12", attempt["asked_at"] >= due, "checked within its immunity", **about)


def _late(
    findings: Findings,
    message_id: str,
    op: Op,
    attempts: Iterable[Row],
    stalls: Sequence[Span],
) -> None:
    """No check is sent more than a round after the decision; time in stalls does not count."""
    for attempt in attempts:
        late = attempt["asked_at"] - op.decided_at
        if late > ROUND_SECONDS:
            late -= _covered(stalls, op.decided_at, attempt["asked_at"])
        about = {"id": message_id, "asked_at": attempt["asked_at"]}
        findings.check("I12", late <= ROUND_SECONDS, "checked after its decision", **about)


def merged(spans: Iterable[Span]) -> list[Span]:
    """Return the same time as spans in order that do not touch: a run has hundreds of stalls."""
    found: list[Span] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((begin, end))
    return found


def _covered(spans: Sequence[Span], start: float, end: float) -> float:
    """Return how much of the time from start to end is inside the merged spans."""
    covered = 0.0
    for at in range(bisect_left(spans, start, key=lambda span: span[1]), len(spans)):
        begin, finish = spans[at]
        if begin >= end:
            break
        covered += min(finish, end) - max(begin, start)
    return covered


def _verdict(
    left: FinalState, calls: RecordedCalls, findings: Findings, message_id: str, op: Op
) -> None:
    about = {"id": message_id, "op": op}
    words = (op.decision.lower(), True)
    found = [(each["outcome"], each["applied"]) for each in left.attempts.get(message_id, ())]
    findings.check("I13", words in found, "decided by a check without its verdict", **about)
    said = {answered for _, answered in calls.answered.get(message_id, ())}
    findings.check(
        "I14", op.decision in said, "no check gave this verdict for this message", **about
    )
    tx = left.halves[message_id]["tx"] if message_id in left.halves else None
    truth = calls.truth.get(str(tx))
    findings.check("G7", truth == op.decision, "against the local transaction", tx=tx, **about)


def _applied(left: FinalState, findings: Findings) -> None:
    """I13 in the other direction: an attempt that is recorded as deciding has its op message."""
    for message_id, attempts in left.attempts.items():
        for attempt in attempts:
            if attempt["applied"] and message_id not in left.lost:
                op = left.op(message_id)
                holds = op is not None and op.decision.lower() == attempt["outcome"]
                findings.check(
                    "I13", holds, "an attempt recorded as deciding has no decision", id=message_id
                )
