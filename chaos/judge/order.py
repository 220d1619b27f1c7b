"""Order: records of one (topic, key) are in the order of their commits.

Two tests. A commit that was acknowledged before another was sent comes first (an interval order,
checked in one pass). The order of the commit log is the order of the offsets.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from math import inf

from chaos.judge.final_state import FinalState, Op, Row
from chaos.judge.findings import Findings
from chaos.judge.recorded_calls import RecordedCalls

Scope = tuple[str, str]


def judge_order(left: FinalState, calls: RecordedCalls, findings: Findings) -> None:
    """I6."""
    for scope, records in _scopes(left).items():
        records.sort(key=lambda record: record["offset"])
        _acknowledged(left, calls, findings, scope, records)
        _listed(left, findings, scope, records)


def _scopes(left: FinalState) -> dict[Scope, list[Row]]:
    """Group records by (topic, key), without those moved by a lost tail or an older publication."""
    scopes: dict[Scope, list[Row]] = defaultdict(list)
    for record in left.records:
        moved = record["id"] in left.lost or record["id"] in left.already
        if record["key"] is not None and not moved:
            scopes[record["topic"], record["key"]].append(record)
    return scopes


def _acknowledged(
    left: FinalState, calls: RecordedCalls, findings: Findings, scope: Scope, records: Iterable[Row]
) -> None:
    """Keep the latest send time so far: no later record may be acknowledged before it."""
    latest, sent_last = None, -inf
    for record in records:
        message_id = record["id"]
        shown_at = (
            calls.by_message[message_id].committed_by if message_id in calls.by_message else inf
        )
        about = {"scope": scope, "later": message_id, "earlier": latest}
        findings.check("I6", shown_at >= sent_last, "acknowledged first, but placed later", **about)
        sent = _sent(calls, message_id, left.op(message_id))
        if sent < inf and sent > sent_last:
            latest, sent_last = message_id, sent


def _sent(calls: RecordedCalls, message_id: str, op: Op | None) -> float:
    """Return the earliest possible time of this message's commit.

    Without an op, because retention removed it, either way may have committed the message.
    """
    said = [at for at, answered in calls.answered.get(message_id, ()) if answered == "COMMIT"]
    checked = min(said, default=inf)
    sent = calls.by_message[message_id].commit_sent if message_id in calls.by_message else inf
    if op is None:
        return min(checked, sent)
    return checked if op.decided_by == "check" else sent


def _listed(left: FinalState, findings: Findings, scope: Scope, records: Iterable[Row]) -> None:
    before, of_before = (0, 0), None
    for record in records:
        entry = left.committed.get(record["id"])
        if entry is None:
            continue
        _, *position = entry
        here = (position[0], position[1])
        about = {"scope": scope, "id": record["id"], "before": of_before}
        findings.check("I6", here >= before, "placed before an earlier commit", **about)
        before, of_before = here, record["id"]
