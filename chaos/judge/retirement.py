"""Retention: what went with its leaf was finished (I15), and is judged by Kafka and the history."""

from __future__ import annotations

from chaos.judge.final_state import FinalState
from chaos.judge.findings import Findings
from chaos.judge.recorded_calls import RecordedCalls


def judge_retirement(left: FinalState, calls: RecordedCalls, findings: Findings) -> None:
    """I15, and I2 and I3 of messages that PostgreSQL no longer has."""
    for message_id in retired(left, calls):
        visible = message_id in left.by_id
        meant, about = calls.meant(message_id), {"id": message_id}
        finished = visible or "ROLLBACK" in meant
        findings.check("I15", finished, "an unfinished half was retired", **about)
        told = calls.by_message[message_id].decisions if message_id in calls.by_message else set()
        if told == {"COMMIT"}:
            findings.check("I3", visible, "retired and committed, but not in Kafka", **about)
        elif told == {"ROLLBACK"}:
            findings.check("I2", not visible, "retired and rolled back, but in Kafka", **about)


def retired(left: FinalState, calls: RecordedCalls) -> list[str]:
    """Return the acknowledged messages that went with their leaf."""
    return [each for each in calls.prepared if left.is_retired(each) and each not in left.lost]
