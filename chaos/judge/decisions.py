"""Decisions: one per message, unchanged and authorized; what was acknowledged is stored."""

from __future__ import annotations

from itertools import chain

from chaos.judge.final_state import FinalState
from chaos.judge.findings import Findings
from chaos.judge.recorded_calls import RecordedCalls


def judge_decisions(left: FinalState, calls: RecordedCalls, findings: Findings) -> None:
    """I4, I5, I11, I18: compare the final state with the answers."""
    _answers(left, calls, findings)
    _prepared(left, calls, findings)
    _listed(left, findings)
    _once(left, findings)
    _refused(left, calls, findings)
    for message_id in calls.accepted_late:
        was_lost = message_id in left.lost
        findings.check("I4", was_lost, "prepared again after its decision", id=message_id)


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
        if left.is_retired(message_id):
            continue
        op = left.op(message_id)
        stored = op.decision if op else None
        stored = stored or ("COMMIT" if message_id in left.already else None)
        holds = stored in found.decisions
        findings.check("I5", holds, "an acknowledged decision is not stored", op=op, **about)


def _prepared(left: FinalState, calls: RecordedCalls, findings: Findings) -> None:
    for message_id, prepared in calls.prepared.items():
        if message_id in left.lost.halves:
            findings.excused += 1
            continue
        there = message_id in left.halves or left.is_retired(message_id)
        about = {"id": message_id, "tx": prepared.tx}
        findings.check("I5", there, "an acknowledged half is missing", **about)


def _listed(left: FinalState, findings: Findings) -> None:
    """I11: op COMMIT and one commit log entry of the same transaction, or neither."""
    for message_id, op in left.ops.items():
        count = left.commit_counts.get(message_id, 0)
        expected = 1 if op.decision == "COMMIT" else 0
        if left.is_log_retired(op.xid):
            continue
        holds = count == expected and (not count or left.committed[message_id][1] == op.xid)
        findings.check("I11", holds, f"{op.decision}, listed {count} times", id=message_id, op=op)
    for message_id in left.committed.keys() - left.ops.keys():
        if left.is_retired(message_id):
            continue
        findings.check("I11", False, "listed without a decision", id=message_id)


def _once(left: FinalState, findings: Findings) -> None:
    """I5: a repeated prepare of a transaction returned the first half message."""
    first: dict[tuple[str, str], str] = {}
    for message_id, half in left.halves.items():
        if half["tx"] is not None:
            holds = first.setdefault((half["producer_group"], half["tx"]), message_id) == message_id
            findings.check(
                "I5", holds, "a transaction has two halves", id=message_id, tx=half["tx"]
            )


def _refused(left: FinalState, calls: RecordedCalls, findings: Findings) -> None:
    stored = {row["tx"] for row in chain(left.halves.values(), left.records)}
    for tx in calls.refused:
        findings.check("I18", tx not in stored, "a refused prepare left a half", tx=tx)
    for message_id, op in left.ops.items():
        if op.decided_by == "producer":
            sent = calls.by_message[message_id].sent if message_id in calls.by_message else set()
            findings.check(
                "I18", op.decision in sent, "a decision that no producer sent", id=message_id, op=op
            )
