"""Publication: Kafka has exactly the committed messages, each once and unchanged."""

from __future__ import annotations

from base64 import b64decode
from itertools import chain

from chaos.judge.final_state import FinalState, Row
from chaos.judge.findings import Findings
from chaos.judge.recorded_calls import RecordedCalls


def judge_publication(left: FinalState, calls: RecordedCalls, findings: Findings) -> None:
    """I1, I2, I3, I7."""
    for message_id, records in left.by_id.items():
        about = {"id": message_id, "records": [_place(record) for record in records]}
        findings.check("I1", len(records) == 1, "more than one visible record", **about)
        for record in records:
            _content(left, calls, findings, record)
    _no_extra_records(left, calls, findings)
    _completeness(left, findings)


def _no_extra_records(left: FinalState, calls: RecordedCalls, findings: Findings) -> None:
    """I2, also for aborted records: no reader saw a message that was not committed."""
    given_up = (record for record in left.uncommitted if not record.get("heal"))
    for record in chain(given_up, left.records):
        message_id = record["id"]
        if message_id is None:
            findings.check("I2", False, "a record without an id", **_place(record))
            continue
        op = left.op(message_id)
        aborted = message_id not in left.by_id
        forgotten = aborted and left.lost.ops.get(message_id) == "COMMIT"
        retired = left.is_retired(message_id) and "COMMIT" in calls.meant(message_id)
        known = message_id in left.already or forgotten or retired
        holds = (op is not None and op.decision == "COMMIT") or known
        findings.check("I2", holds, "in Kafka, but not committed", **_place(record), op=op)
    for message_id in left.by_id.keys() & left.lost.halves:
        findings.check("I2", message_id in left.already, "an orphan is not listed", id=message_id)
    tail_lost = bool(left.lost.halves or left.lost.ops)
    listed = {
        message_id
        for manifests in left.manifests.values()
        for manifest in manifests
        for message_id, status in manifest.get("entries", ())
        if status == "P"
    }
    for message_id in left.already:
        # If only the end of a batch was lost, the whole batch is learned from Kafka.
        whole_batch = tail_lost and message_id in left.committed
        # Kafka may show a batch whose manifest it has aborted.
        unlisted = message_id in left.committed and message_id not in listed
        holds = message_id in left.lost or whole_batch or unlisted
        findings.check("I2", holds, "an orphan without a lost tail", id=message_id)


def _completeness(left: FinalState, findings: Findings) -> None:
    for message_id, op in left.ops.items():
        held = left.held.get(message_id)
        if op.decision != "COMMIT" or (held is not None and not held["released"]):
            continue
        about = {"id": message_id, "entry": left.committed.get(message_id)}
        findings.check("I3", message_id in left.by_id, "committed, but not in Kafka", **about)


def _content(left: FinalState, calls: RecordedCalls, findings: Findings, record: Row) -> None:
    half, prepared = left.halves.get(record["id"]), calls.prepared.get(record["id"])
    about = _place(record)
    if half is not None:
        names = ("topic", "key", "sha", "content_digest", "tx", "producer_group")
        differ = [name for name in names if half[name] != record[name]]
        findings.check("I7", not differ, "record and half differ", differ=differ, **about)
    if prepared is not None:
        key = None if prepared.key is None else b64decode(prepared.key).hex()
        sent = (prepared.tx, prepared.topic, key, prepared.sha, prepared.headers)
        found = tuple(record[name] for name in ("tx", "topic", "key", "sha", "headers"))
        findings.check("I7", sent == found, "record and request differ", **about)


def _place(record: Row) -> Row:
    return {name: record[name] for name in ("id", "topic", "partition", "offset")}
