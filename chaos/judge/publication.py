"""Publication: what was committed is in Kafka once and unchanged, and nothing else is."""

from __future__ import annotations

from chaos.judge.calls import Calls
from chaos.judge.findings import Findings
from chaos.judge.leftovers import Leftovers, Row


def judge_publication(left: Leftovers, calls: Calls, findings: Findings) -> None:
    """I1, I2, I3, I7."""
    for message_id, records in left.by_id.items():
        about = {"id": message_id, "records": [_place(record) for record in records]}
        findings.check("I1", len(records) == 1, "more than one visible record", **about)
        for record in records:
            _content(left, calls, findings, record)
    _nothing_else(left, findings)
    _nothing_less(left, findings)


def _nothing_else(left: Leftovers, findings: Findings) -> None:
    """I2, also of records that were aborted: no reader of any kind saw what was not committed."""
    for record in left.uncommitted:
        message_id = record["id"]
        op = left.op(message_id)
        known = message_id in left.already or left.lost.ops.get(message_id) == "COMMIT"
        holds = (op is not None and op.decision == "COMMIT") or known
        findings.check("I2", holds, "in Kafka and not committed", **_place(record), op=op)
    for message_id in left.by_id.keys() & left.lost.halves:
        findings.check("I2", message_id in left.already, "an orphan is not named", id=message_id)


def _nothing_less(left: Leftovers, findings: Findings) -> None:
    for message_id, op in left.ops.items():
        if op.decision != "COMMIT" or message_id in left.held:
            continue
        about = {"id": message_id, "entry": left.committed.get(message_id)}
        findings.check("I3", message_id in left.by_id, "committed, not in Kafka", **about)


def _content(left: Leftovers, calls: Calls, findings: Findings, record: Row) -> None:
    half, prepared = left.halves.get(record["id"]), calls.prepared.get(record["id"])
    about = _place(record)
    if half is not None:
        names = ("topic", "key", "sha", "content_digest", "tx", "producer_group")
        differ = [name for name in names if half[name] != record[name]]
        findings.check("I7", not differ, "record and half differ", differ=differ, **about)
    if prepared is not None:
        sent = (prepared.tx, prepared.topic, prepared.sha, prepared.headers)
        found = (record["tx"], record["topic"], record["sha"], record["headers"])
        findings.check("I7", sent == found, "record and request differ", **about)


def _place(record: Row) -> Row:
    return {name: record[name] for name in ("id", "topic", "partition", "offset")}
