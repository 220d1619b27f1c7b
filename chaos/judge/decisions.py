"""Decisions: one per message, unchanged and authorized; what was acknowledged is stored."""

from __future__ import annotations

from itertools import chain

from chaos.judge.calls import RecordedCalls
from chaos.judge.final_state import FinalState
from chaos.judge.findings import Findings


def judge_decisions(left: FinalState, calls: RecordedCalls, findings: Findings) -> None:
    """I4, I5, I18, I19: compare the final state with the answers."""
    _answers(left, calls, findings)
    _prepared(left, calls, findings)
    _once(left, findings)
    _whole(left, findings)
    _refused(left, calls, findings)


def _answers(left: FinalState, calls: RecordedCalls, findings: Findings) -> None:
    """I4: all answers show one decision. I5: it is the stored one."""
    for message_id, found in calls.by_message.items():
        if not found.decisions:
            continue
        if message_id in left.lost:
            findings.excused += 1
            continue
        about = {"id": message_id, "told": sorted(found.decisions)}
        findings.check("I4", len(found.decisions) == 1, "answers contradict each other", **about)
        op = left.ops.get(message_id)
        stored = op.decision if op else "COMMIT" if message_id in left.already else None
        holds = stored in found.decisions
        findings.check("I5", holds, "an acknowledged decision is not stored", op=op, **about)


def _prepared(left: FinalState, calls: RecordedCalls, findings: Findings) -> None:
    for message_id, prepared in calls.prepared.items():
        if message_id in left.lost.halves:
            findings.excused += 1
            continue
        about = {"id": message_id, "tx": prepared.tx}
        findings.check("I5", message_id in left.halves, "an acknowledged half is missing", **about)


def _once(left: FinalState, findings: Findings) -> None:
    """I5: a repeated prepare of a transaction returned the first half message."""
    first: dict[tuple[str, str], str] = {}
    for message_id, half in left.halves.items():
        if half["leader_id"] is not None:
            continue
        holds = first.setdefault((half["producer_group"], half["tx"]), message_id) == message_id
        findings.check("I5", holds, "a transaction has two halves", id=message_id, tx=half["tx"])


def _whole(left: FinalState, findings: Findings) -> None:
    """I19: a follower has the decision of its leader, and a place in the log if that has one."""
    leaders = {half["half_id"]: message_id for message_id, half in left.halves.items()}
    for message_id, half in left.halves.items():
        if half["leader_id"] is not None:
            leader = leaders.get(half["leader_id"], "")
            both = [(left.ops.get(each), each in left.committed) for each in (leader, message_id)]
            holds = leader in left.halves and both[0] == both[1]
            findings.check("I19", holds, "a follower stands alone", id=message_id, leader=leader)


def _refused(left: FinalState, calls: RecordedCalls, findings: Findings) -> None:
    """I18: nothing of a refused prepare, and no decision that was never sent or answered.

    A follower is in no end and no check.
    """
    stored = {row["tx"] for row in chain(left.halves.values(), left.records)}
    for tx in calls.refused:
        findings.check("I18", tx not in stored, "a refused prepare left a half", tx=tx)
    for message_id, op in left.ops.items():
        if left.halves[message_id]["leader_id"] is not None:
            continue
        message = calls.by_message[message_id]
        given = {"producer": message.sent, "check": message.answered}.get(op.decided_by)
        if given is not None:
            about = {"id": message_id, "op": op}
            findings.check("I18", op.decision in given, "a decision never given", **about)
