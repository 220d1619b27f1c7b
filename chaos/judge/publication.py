"""Publication: Kafka has exactly the committed messages, each once and unchanged."""

from __future__ import annotations

from base64 import b64decode
from itertools import chain
from typing import Final

from chaos.judge.calls import RecordedCalls
from chaos.judge.final_state import FinalState, Row
from chaos.judge.findings import Findings

STORED: Final = ("topic", "key", "sha", "content_digest", "tx", "producer_group")
PREPARED: Final = ("tx", "topic", "key", "sha", "headers")


def judge_publication(left: FinalState, calls: RecordedCalls, findings: Findings) -> None:
    """I1, I2, I3, I7."""
    for message_id, records in left.by_id.items():
        places = [_place(record) for record in records]
        about = {"id": message_id, "records": places}
        findings.check("I1", len(records) == 1, "more than one visible record", **about)
        for record in records:
            _content(left, calls, findings, record)
    _no_other_records(left, findings)
    for message_id, op in left.ops.items():
        held = left.held.get(message_id)
        if op.decision == "COMMIT" and (held is None or held["released"]):
            holds = message_id in left.by_id
            findings.check("I3", holds, "committed, but not in Kafka", id=message_id)


def _no_other_records(left: FinalState, findings: Findings) -> None:
    """I2, also for aborted records: not even a read_uncommitted reader saw anything else.

    What Kafka has of a lost tail of PostgreSQL is listed as already published.
    """
    for record in chain(left.uncommitted, left.records):
        message_id = record["id"]
        op = left.ops.get(message_id)
        forgotten = message_id not in left.by_id and left.lost.ops.get(message_id) == "COMMIT"
        known = message_id in left.already or forgotten
        holds = (op is not None and op.decision == "COMMIT") or known
        findings.check("I2", holds, "in Kafka, but not committed", **_place(record), op=op)
    tail_lost = bool(left.lost.halves or left.lost.ops)
    for message_id in left.already:
        # If only the end of a batch was lost, the whole batch is learned from Kafka.
        holds = message_id in left.lost or (tail_lost and message_id in left.committed)
        findings.check("I2", holds, "an orphan without a lost tail", id=message_id)


def _content(left: FinalState, calls: RecordedCalls, findings: Findings, record: Row) -> None:
    half, prepared = left.halves.get(record["id"]), calls.prepared.get(record["id"])
    about = _place(record)
    if half is not None:
        differ = [name for name in STORED if half[name] != record[name]]
        findings.check("I7", not differ, "record and half differ", differ=differ, **about)
    if prepared is not None:
        key = None if prepared.key is None else b64decode(prepared.key).hex()
        sent = prepared._replace(key=key)
        found = tuple(record[name] for name in PREPARED)
        findings.check("I7", sent == found, "record and request differ", **about)


def _place(record: Row) -> Row:
    return {name: record[name] for name in ("id", "topic", "partition", "offset")}
