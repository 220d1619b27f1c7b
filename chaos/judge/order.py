"""Order: records of one (topic, key) are in the order of their commits.

Two tests. A commit that was acknowledged before another was sent comes first (an interval order,
checked in one pass). The order of the commit log is the order of the offsets.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from math import inf

from chaos.judge.calls import RecordedCalls
from chaos.judge.final_state import FinalState, Row
from chaos.judge.findings import Findings

Scope = tuple[str, str]


def judge_order(left: FinalState, calls: RecordedCalls, findings: Findings) -> None:
    """I6."""
    for scope, records in _scopes(left).items():
        records.sort(key=lambda record: record["offset"])
        _acknowledged(calls, findings, scope, records)
        _listed(left, findings, scope, records)


def _scopes(left: FinalState) -> dict[Scope, list[Row]]:
    """Group records by (topic, key), without those moved by a lost tail."""
    scopes: dict[Scope, list[Row]] = defaultdict(list)
    for record in left.records:
        moved = record["id"] in left.lost or record["id"] in left.already
        if record["key"] is not None and not moved:
            scopes[record["topic"], record["key"]].append(record)
    return scopes


def _acknowledged(
    calls: RecordedCalls, findings: Findings, scope: Scope, records: Iterable[Row]
) -> None:
    """Keep the latest send time so far: no later record may be acknowledged before it."""
    latest, sent_last = None, -inf
    for record in records:
        message = calls.by_message[record["id"]]
        about = {"scope": scope, "later": record["id"], "earlier": latest}
        holds = message.committed_by >= sent_last
        findings.check("I6", holds, "acknowledged first, but placed later", **about)
        if sent_last < message.commit_sent < inf:
            latest, sent_last = record["id"], message.commit_sent


def _listed(left: FinalState, findings: Findings, scope: Scope, records: Iterable[Row]) -> None:
    before, of_before = (0, 0), None
    for record in records:
        here = left.committed.get(record["id"])
        if here is not None:
            about = {"scope": scope, "id": record["id"], "before": of_before}
            findings.check("I6", here >= before, "placed before an earlier commit", **about)
            before, of_before = here, record["id"]
